"""Graphs of the target's verify forward are captured with a tree mask."""

from __future__ import annotations

from ddtree_patcher.codemods import Anchor, InsertAfter, ReplaceExpression
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Contract, Refusal, Step, Variant
from ddtree_patcher.shape import Defines, HasFile, Lacks

from ..files import CUDA_GRAPH_RUNNER, DDTREE_CONFIG, DECODE_GRAPH_RUNNER, SPEC_INFO, fragments, indented

_CODE = fragments("cuda_graph_runner.py").body("capture_mask")
_POLICY = "_, build_custom_mask = resolve_dflash_verify_mask_policy(...)"
_OLD_SCOPE = "CudaGraphRunner.get_spec_info"
_SCOPE = "DecodeCudaGraphRunner.get_spec_info"
_IN_BRANCH = "if self.model_runner.spec_algorithm.is_dflash(): ..."
_IN_FAMILY_BRANCH = "if self.model_runner.spec_algorithm.is_dflash_family(): ..."
# The same number for every algorithm but DDTREE, whose drafter captures fewer rows than its target.
_SHARED_WIDTH = "self.model_runner.server_args.speculative_num_draft_tokens"
_OWN_WIDTH = "int(self.num_tokens_per_bs)"
_PER_REQ = Defines(SPEC_INFO, "SpeculativeAlgorithm.get_num_tokens_per_req_for_target_verify")

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
_DECODE_BEFORE = _BEFORE.replace("class Cuda", "class DecodeCuda")
_FAMILY_BEFORE = _DECODE_BEFORE.replace("is_dflash()", "is_dflash_family()")
_WIDE_BEFORE = _DECODE_BEFORE.replace("custom_mask=build", f"draft_token_num={_SHARED_WIDTH}, custom_mask=build")
_PREDICATE = "class SpeculativeAlgorithm:\n    def is_ddtree(self): ...\n"
_CONFIG = {DDTREE_CONFIG: "def make_room_for_masks(attn_backend, rows, longest): ...\n"}
_OTHERS = {SPEC_INFO: _PREDICATE, **_CONFIG}
_HOOKED = {**_CONFIG, SPEC_INFO: _PREDICATE + "\n    def get_num_tokens_per_req_for_target_verify(self): ...\n"}


def _mask(path: str, scope: str, branch: str) -> InsertAfter:
    return InsertAfter(path, Anchor(_POLICY, scope=scope, within=branch), _CODE)


def _after(before: str) -> str:
    return before.replace("            spec_info", indented(_CODE, " " * 12) + "            spec_info").replace(
        _SHARED_WIDTH, _OWN_WIDTH
    )


STEP = Step(
    id="graph-mask",
    summary="graphs of the target's verify forward are captured with a tree mask",
    why=(
        "DFLASH captures its verify forward without a mask on the backends that have a causal path of their own. A "
        "graph without a mask would replay a tree as a chain: no error, wrong tokens."
    ),
    requires=("enum", "runtime"),
    contract=(
        Contract(SPEC_INFO, "SpeculativeAlgorithm.is_ddtree", ("self",)),
        Contract(DDTREE_CONFIG, "make_room_for_masks", ("attn_backend", "rows", "longest")),
    ),
    variants=(
        Variant(
            "cuda_graph_runner",
            when=(HasFile(CUDA_GRAPH_RUNNER),),
            edits=(_mask(CUDA_GRAPH_RUNNER, _OLD_SCOPE, _IN_BRANCH),),
        ),
        Variant(
            "decode_runner_shared_width",
            when=(HasFile(DECODE_GRAPH_RUNNER), Lacks(HasFile(CUDA_GRAPH_RUNNER)), Lacks(_PER_REQ)),
            edits=(
                _mask(DECODE_GRAPH_RUNNER, _SCOPE, _IN_BRANCH),
                ReplaceExpression(DECODE_GRAPH_RUNNER, _SCOPE, _SHARED_WIDTH, _OWN_WIDTH),
            ),
        ),
        Variant(
            "decode_runner_own_width",
            when=(HasFile(DECODE_GRAPH_RUNNER), Lacks(HasFile(CUDA_GRAPH_RUNNER)), _PER_REQ),
            edits=(_mask(DECODE_GRAPH_RUNNER, _SCOPE, _IN_FAMILY_BRANCH),),
        ),
    ),
    cases=(
        Case("cuda_graph_runner", {CUDA_GRAPH_RUNNER: _BEFORE, **_OTHERS}, {CUDA_GRAPH_RUNNER: _after(_BEFORE)}),
        Case(
            "decode_runner_shared_width",
            {DECODE_GRAPH_RUNNER: _WIDE_BEFORE, **_OTHERS},
            {DECODE_GRAPH_RUNNER: _after(_WIDE_BEFORE)},
        ),
        Case(
            "decode_runner_own_width",
            {DECODE_GRAPH_RUNNER: _FAMILY_BEFORE, **_HOOKED},
            {DECODE_GRAPH_RUNNER: _after(_FAMILY_BEFORE)},
        ),
    ),
    refusals=(
        Refusal(
            {CUDA_GRAPH_RUNNER: _BEFORE.replace("_, build_custom_mask =", "name, mask ="), **_OTHERS},
            StepOutcome.ANCHOR_MISSING,
        ),
        Refusal({DECODE_GRAPH_RUNNER: _DECODE_BEFORE, **_OTHERS}, StepOutcome.ANCHOR_MISSING),
        Refusal({CUDA_GRAPH_RUNNER: _BEFORE, **_CONFIG, SPEC_INFO: "x = 1\n"}, StepOutcome.PRECONDITION_FAILED),
        Refusal(_OTHERS, StepOutcome.ANCHOR_MISSING),
    ),
)
