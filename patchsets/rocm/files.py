"""The files of SGLang that the steps speak of, and the code that they bring."""

from __future__ import annotations

from pathlib import Path

from ddtree_patcher.codemods import Fragments

MODEL_CONFIG = "sglang/srt/configs/model_config.py"
MOE_WNA16 = "sglang/srt/layers/quantization/moe_wna16.py"
QWEN3_NEXT = "sglang/srt/models/qwen3_next.py"
COHERE2_MOE = "sglang/srt/models/cohere2_moe.py"
FLASHINFER_DISPATCHER = "sglang/srt/layers/moe/token_dispatcher/flashinfer.py"
MODEL_RUNNER = "sglang/srt/model_executor/model_runner.py"
LOAD_MODEL_UTILS = "sglang/srt/model_executor/model_runner_components/load_model_utils.py"


def fragments(name: str) -> Fragments:
    """The definitions of one file under ``fragments/``."""
    return Fragments.load(Path(__file__).parent / "fragments" / name)
