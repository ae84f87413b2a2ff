"""Goes into ``sglang/srt/model_executor/cuda_graph_runner.py`` or, from 0.5.14 on, its successor: the body."""

from __future__ import annotations

from typing import Any


def capture_mask(self: Any, build_custom_mask: bool) -> None:
    """In ``get_spec_info``, after DFLASH's mask policy is known: a tree is never verified without its mask."""
    if self.model_runner.spec_algorithm.is_ddtree():
        build_custom_mask = True
        if not self.model_runner.is_draft_worker:
            from sglang.srt.speculative.ddtree_config import make_room_for_masks

            width = self.max_num_token // self.max_bs
            longest = self.model_runner.req_to_token_pool.req_to_token.shape[1] + width
            make_room_for_masks(self.attn_backend, self.max_num_token, longest)
