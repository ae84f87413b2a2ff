"""Graphs of the target's verify forward are captured with a tree mask."""

from __future__ import annotations

from ddtree_patcher.codemods import Anchor, InsertAfter
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Contract, Refusal, Step, Variant
from ddtree_patcher.shape import HasFile

from ..files import CUDA_GRAPH_RUNNER, SPEC_INFO, fragments, indented

_CODE = fragments("cuda_graph_runner.py").body("capture_mask")
_POLICY = Anchor("_, build_custom_mask = resolve_dflash_verify_mask_policy(...)", scope="CudaGraphRunner.get_spec_info")

_BEFORE = """\
class CudaGraphRunner:
    def get_spec_info(self, num_tokens):
        if self.model_runner.spec_algorithm.is_dflash():
            # Avoid custom-mask modes.
            _, build_custom_mask = resolve_dflash_verify_mask_policy(
                self.model_runner.attn_backend
            )
            spec_info = DFlashVerifyInput(custom_mask=build_custom_mask)
"""
_OTHERS = {SPEC_INFO: "class SpeculativeAlgorithm:\n    def is_ddtree(self): ...\n"}

STEP = Step(
    id="graph-mask",
    summary="graphs of the target's verify forward are captured with a tree mask",
    why=(
        "DFLASH captures its verify forward without a mask on the backends that have a causal path of their own. A "
        "graph without a mask would replay a tree as a chain: no error, wrong tokens."
    ),
    requires=("enum",),
    variants=(
        Variant(
            "cuda_graph_runner",
            when=(HasFile(CUDA_GRAPH_RUNNER),),
            edits=(InsertAfter(CUDA_GRAPH_RUNNER, _POLICY, _CODE),),
            contract=(Contract(SPEC_INFO, "SpeculativeAlgorithm.is_ddtree", ("self",)),),
        ),
    ),
    cases=(
        Case(
            "cuda_graph_runner",
            {CUDA_GRAPH_RUNNER: _BEFORE, **_OTHERS},
            {
                CUDA_GRAPH_RUNNER: _BEFORE.replace(
                    "            spec_info", indented(_CODE, " " * 12) + "            spec_info"
                )
            },
        ),
    ),
    refusals=(
        Refusal(
            {CUDA_GRAPH_RUNNER: _BEFORE.replace("_, build_custom_mask =", "name, mask ="), **_OTHERS},
            StepOutcome.ANCHOR_MISSING,
        ),
        Refusal({CUDA_GRAPH_RUNNER: _BEFORE, SPEC_INFO: "x = 1\n"}, StepOutcome.PRECONDITION_FAILED),
        Refusal({}, StepOutcome.FILE_MISSING),
    ),
)
