"""A keyword argument is dropped: the attention of Qwen3-Next knows nothing of the quantization.

Reported by the R9700 series of github.com/mattbucci/2x-R9700-RDNA4-GFX1201-sglang-inference (its patch 036): with
``moe_wna16`` and layers that are left unquantized, constructing the attention ends in a ``TypeError``. vLLM had the
same fault in the method itself (vllm-project/vllm pull request 12648).
"""

from __future__ import annotations

from ddtree_patcher.codemods import EditCall
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Refusal, Step, Variant
from ddtree_patcher.shape import Defines

from ..files import QWEN3_NEXT

_LAYER = "Qwen3HybridAttentionDecoderLayer"

_BEFORE = """\
class Qwen3HybridAttentionDecoderLayer:
    def __init__(self, layer_id, quant_config, prefix):
        self.o_proj = RowParallelLinear(quant_config=quant_config)
        self.attn = RadixAttention(
            self.num_heads,
            layer_id=layer_id,
            quant_config=quant_config,
            prefix=prefix,
        )
"""
_ARGUMENT = "            quant_config=quant_config,\n"

STEP = Step(
    id="attention",
    summary="the attention of Qwen3-Next is made without the quantization of its weights",
    why=(
        "An argument that should not be passed: attention has no weights, and moe_wna16 answers for a module that is "
        "left unquantized with a method for linear layers, which cannot make weights for attention. Qwen3-MoE does not "
        "pass it either. What is lost: scales for an FP8 KV cache that a checkpoint of this model brings are not read "
        "then, as they are not for Qwen3-MoE."
    ),
    requires=("quantization",),
    variants=(
        Variant(
            "keyword",
            when=(Defines(QWEN3_NEXT, f"{_LAYER}.__init__"),),
            edits=(
                EditCall(QWEN3_NEXT, f"{_LAYER}.__init__", "RadixAttention(...)", "quant_config", old="quant_config"),
            ),
        ),
    ),
    cases=(Case("keyword", {QWEN3_NEXT: _BEFORE}, {QWEN3_NEXT: _BEFORE.replace(_ARGUMENT, "")}),),
    refusals=(
        Refusal({QWEN3_NEXT: _BEFORE.replace("Hybrid", "")}, StepOutcome.ANCHOR_MISSING),
        Refusal({QWEN3_NEXT: _BEFORE.replace("RadixAttention", "Attention")}, StepOutcome.ANCHOR_MISSING),
        Refusal(
            {QWEN3_NEXT: _BEFORE.replace(_ARGUMENT, "            quant_config=kv_cache_config(quant_config),\n")},
            StepOutcome.ANCHOR_MISSING,
        ),
        Refusal({QWEN3_NEXT: _BEFORE + _BEFORE.partition("RowP")[2].partition("\n")[2]}, StepOutcome.ANCHOR_AMBIGUOUS),
    ),
)
