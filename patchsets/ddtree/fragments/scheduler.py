"""Goes into ``sglang/srt/managers/scheduler.py``: the body, after DFLASH has looked at a request."""

from __future__ import annotations

from typing import Any


def validate_request(self: Any, req: Any, error_msg: Any) -> Any:
    """In ``Scheduler.handle_generate_request``, after ``error_msg = validate_dflash_request(req)``."""
    if error_msg is None and self.spec_algorithm.is_ddtree():
        from sglang.srt.speculative.ddtree_args import validate_ddtree_request

        error_msg = validate_ddtree_request(
            req, self.server_args.speculative_num_draft_tokens, self.max_total_num_tokens
        )
