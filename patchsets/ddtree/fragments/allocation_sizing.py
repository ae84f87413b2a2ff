"""Goes into ``get_req_to_token_extra_context_len`` of ``mem_cache/common.py`` or ``mem_cache/allocation_sizing.py``."""

from __future__ import annotations

from typing import Any

from sglang.srt.runtime_context import get_spec


def headroom_of_arguments(extra: int, server_args: Any) -> None:
    """0.5.14 to 0.5.17: before ``return extra``."""
    if server_args.speculative_algorithm == "DDTREE":
        from sglang.srt.speculative.ddtree_config import row_headroom

        extra = max(extra, row_headroom(server_args.page_size))


def headroom(extra: int, page_size: int) -> None:
    """From 0.5.18 on: at the same place, where the page size is a local name."""
    if get_spec().speculative_algorithm == "DDTREE":
        from sglang.srt.speculative.ddtree_config import row_headroom

        extra = max(extra, row_headroom(page_size))
