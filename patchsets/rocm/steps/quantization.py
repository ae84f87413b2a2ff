"""An allow-list is extended: ``moe_wna16`` may be chosen on ROCm.

Reported by the R9700 series of github.com/mattbucci/2x-R9700-RDNA4-GFX1201-sglang-inference (its patch 031) for SGLang
0.5.11 and later: the method is known and its Triton kernels run, and the configuration is refused by name. The same
list of vLLM was reported in vllm-project/vllm pull request 35596.
"""

from __future__ import annotations

from ddtree_patcher.codemods import Anchor, ExtendLiteral
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Contract, Refusal, Step, Variant
from ddtree_patcher.shape import Holds

from ..files import MODEL_CONFIG, MOE_WNA16

_LIST = Anchor("rocm_supported_quantization = ...", scope="ModelConfig._verify_quantization")

_BEFORE = """\
class ModelConfig:
    def _verify_quantization(self):
        rocm_supported_quantization = [
            "awq",
            "fp8",  # all of them
            "quark",
        ]
        if is_hip() and self.quantization not in rocm_supported_quantization:
            raise ValueError(self.quantization)
"""
_METHOD = {MOE_WNA16: "class MoeWNA16Config: ...\n"}

STEP = Step(
    id="quantization",
    summary="mixtures of experts with 4-bit and 8-bit weights (moe_wna16) may be served on ROCm",
    why="An allow-list that lacks a name: the kernels are written in Triton and run, and the list refuses the method.",
    contract=(Contract(MOE_WNA16, "MoeWNA16Config"),),
    variants=(
        Variant(
            "list",
            when=(Holds(MODEL_CONFIG, _LIST),),
            edits=(ExtendLiteral(MODEL_CONFIG, _LIST, '"moe_wna16"', beside='"fp8"'),),
        ),
    ),
    cases=(
        Case(
            "list",
            {MODEL_CONFIG: _BEFORE, **_METHOD},
            {MODEL_CONFIG: _BEFORE.replace("  # all of them\n", '  # all of them\n            "moe_wna16",\n')},
        ),
    ),
    refusals=(
        Refusal({MODEL_CONFIG: _BEFORE}, StepOutcome.PRECONDITION_FAILED),
        Refusal({MODEL_CONFIG: _BEFORE.replace("_verify", "_check"), **_METHOD}, StepOutcome.ANCHOR_MISSING),
        Refusal({MODEL_CONFIG: _BEFORE.replace('"fp8"', '"fp8_static"'), **_METHOD}, StepOutcome.ANCHOR_MISSING),
    ),
)
