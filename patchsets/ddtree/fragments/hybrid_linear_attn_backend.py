"""Goes into ``sglang/srt/layers/attention/hybrid_linear_attn_backend.py``: kernels follow a tree."""

from __future__ import annotations

from typing import Any


def open_gate(self: Any, model_runner: Any) -> None:
    """After ``self.topk = ...``: above 1 a verify forward takes the links of its nodes, and not their order."""
    if model_runner.spec_algorithm.is_ddtree():
        from sglang.srt.speculative.ddtree_recurrent import tree_gate

        self.topk = tree_gate(model_runner, self.topk)
