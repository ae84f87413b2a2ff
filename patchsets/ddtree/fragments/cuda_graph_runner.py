"""Goes into ``sglang/srt/model_executor/cuda_graph_runner.py``: the body, after the mask policy of DFLASH is known."""

from __future__ import annotations

from typing import Any


def capture_mask(self: Any, build_custom_mask: bool) -> None:
    """In ``CudaGraphRunner.get_spec_info``: a tree is never verified without its mask."""
    build_custom_mask = build_custom_mask or self.model_runner.spec_algorithm.is_ddtree()
