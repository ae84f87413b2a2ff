"""Goes into ``sglang/srt/managers/scheduler.py``: the bodies, after DFLASH has looked at a request."""

from __future__ import annotations

from typing import Any


def validate_request(self: Any, req: Any, error_msg: Any) -> Any:
    """0.5.11 to 0.5.16, in ``Scheduler.handle_generate_request``: the width is in the arguments."""
    if error_msg is None and self.spec_algorithm.is_ddtree():
        from sglang.srt.speculative.ddtree_args import validate_ddtree_request

        error_msg = validate_ddtree_request(
            req, self.server_args.speculative_num_draft_tokens, self.max_total_num_tokens
        )


def validate_request_by_namespace(self: Any, req: Any, error_msg: Any) -> Any:
    """From 0.5.17 on: the width is published. From 0.5.22 on in ``Scheduler._handle_generate_request``."""
    if error_msg is None and self.spec_algorithm.is_ddtree():
        from sglang.srt.runtime_context import get_spec
        from sglang.srt.speculative.ddtree_args import validate_ddtree_request

        error_msg = validate_ddtree_request(req, get_spec().speculative_num_draft_tokens, self.max_total_num_tokens)
