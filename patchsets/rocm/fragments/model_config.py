"""What goes into ``sglang/srt/configs/model_config.py``."""

from __future__ import annotations

from typing import Any


def cohere2_moe(hf_text_config: Any) -> None:
    """The branch of ``get_hybrid_layer_ids``."""
    kinds = list(enumerate(hf_text_config.layer_types))
    swa_attention_layer_ids = [layer for layer, kind in kinds if kind == "sliding_attention"]
    full_attention_layer_ids = [layer for layer, kind in kinds if kind == "full_attention"]
