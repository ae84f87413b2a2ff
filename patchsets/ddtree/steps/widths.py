"""The drafter's forwards have the rows of a block, the target's those of a tree."""

from __future__ import annotations

from ddtree_patcher.codemods import Anchor, InsertAfter, InsertBefore
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Contract, Refusal, Step, Variant
from ddtree_patcher.shape import Defines, HasFile, Lacks

from ..files import DDTREE_CONFIG, DFLASH_WORKER, SPEC_INFO, fragments, indented

_CODE = fragments("spec_info.py")
_PER_BS = "SpeculativeAlgorithm.get_num_tokens_per_bs_for_target_verify"
_PER_REQ = "SpeculativeAlgorithm.get_num_tokens_per_req_for_target_verify"
_DUMMY = "create_dummy_verify_input"
_HELPERS = (
    Contract(DDTREE_CONFIG, "draft_width", ()),
    Contract(DDTREE_CONFIG, "as_wide_as", ("verify_input", "rows")),
    Contract(SPEC_INFO, "SpeculativeAlgorithm.is_ddtree", ("self",)),
)


def _edits(hook: str, branch: str, dummy: str) -> tuple[InsertBefore | InsertAfter, ...]:
    made = Anchor("spec_info = DFlashVerifyInput(...)", scope=_DUMMY, within=branch)
    return (
        InsertBefore(SPEC_INFO, Anchor("return num_draft_tokens", scope=hook), _CODE.body("draft_width")),
        InsertAfter(SPEC_INFO, made, _CODE.body(dummy)),
    )


_OTHERS = {DDTREE_CONFIG: "def draft_width(): ...\ndef as_wide_as(verify_input, rows): ...\n"}
_PER_REQ_BEFORE = """\
class SpeculativeAlgorithm:
    def is_ddtree(self): ...

    def get_num_tokens_per_req_for_target_verify(self, num_draft_tokens, is_draft_worker):
        # It is an interface.
        if self.is_dspark() and is_draft_worker:
            return num_draft_tokens - 1
        return num_draft_tokens


def create_dummy_verify_input(spec_algorithm, custom_mask, num_tokens_per_req, is_draft_worker):
    if spec_algorithm.is_dflash_family():
        spec_info = DFlashVerifyInput(
            draft_token=None,
        )
    return spec_info
"""
_PER_BS_BEFORE = (
    _PER_REQ_BEFORE.replace("per_req", "per_bs")
    .replace("is_dflash_family()", "is_dflash()")
    .replace("return num_draft_tokens - 1", "pass")
)


def _after(before: str, dummy: str) -> str:
    hook = indented(_CODE.body("draft_width"), " " * 8)
    last = "        return num_draft_tokens\n"
    return before.replace(last, hook + last).replace(
        "            draft_token=None,\n        )\n",
        "            draft_token=None,\n        )\n" + indented(_CODE.body(dummy), " " * 8),
    )


STEP = Step(
    id="widths",
    summary="the drafter's forwards have the rows of a block, the target's those of a tree",
    why=(
        "Graphs, rehearsals and buffers of target and drafter ask one hook how many rows a request has, and it knows "
        "which of the two asks. Up to 0.5.13.post1 the drafter has arguments of its own, which the worker narrows."
    ),
    requires=("enum", "flags", "runtime"),
    variants=(
        Variant("own_arguments", when=(HasFile(DFLASH_WORKER),)),
        Variant(
            "hook_per_bs",
            when=(Lacks(HasFile(DFLASH_WORKER)), Defines(SPEC_INFO, _PER_BS), Lacks(Defines(SPEC_INFO, _PER_REQ))),
            edits=_edits(_PER_BS, "if spec_algorithm.is_dflash(): ...", "dummy_width_per_bs"),
            contract=(
                *_HELPERS,
                Contract(SPEC_INFO, _PER_BS, ("self", "num_draft_tokens", "is_draft_worker")),
                Contract(SPEC_INFO, _DUMMY, ("spec_algorithm", "num_tokens_per_bs")),
            ),
        ),
        Variant(
            "hook_per_req",
            when=(Lacks(HasFile(DFLASH_WORKER)), Defines(SPEC_INFO, _PER_REQ)),
            edits=_edits(_PER_REQ, "if spec_algorithm.is_dflash_family(): ...", "dummy_width_per_req"),
            contract=(
                *_HELPERS,
                Contract(SPEC_INFO, _PER_REQ, ("self", "num_draft_tokens", "is_draft_worker")),
                Contract(SPEC_INFO, _DUMMY, ("spec_algorithm", "num_tokens_per_req")),
            ),
        ),
    ),
    cases=(
        Case("own_arguments", {DFLASH_WORKER: "x = 1\n", SPEC_INFO: "x = 1\n"}, {}),
        Case(
            "hook_per_bs",
            {SPEC_INFO: _PER_BS_BEFORE, **_OTHERS},
            {SPEC_INFO: _after(_PER_BS_BEFORE, "dummy_width_per_bs")},
        ),
        Case(
            "hook_per_req",
            {SPEC_INFO: _PER_REQ_BEFORE, **_OTHERS},
            {SPEC_INFO: _after(_PER_REQ_BEFORE, "dummy_width_per_req")},
        ),
    ),
    refusals=(
        Refusal(
            {SPEC_INFO: _PER_REQ_BEFORE.replace("return num_draft_tokens\n", "return n\n"), **_OTHERS},
            StepOutcome.ANCHOR_MISSING,
        ),
        Refusal(
            {SPEC_INFO: _PER_REQ_BEFORE.replace("spec_info = DFlash", "info = DFlash"), **_OTHERS},
            StepOutcome.ANCHOR_MISSING,
        ),
        Refusal({SPEC_INFO: _PER_REQ_BEFORE}, StepOutcome.PRECONDITION_FAILED),
        Refusal({SPEC_INFO: "class SpeculativeAlgorithm: ...\n", **_OTHERS}, StepOutcome.ANCHOR_MISSING),
    ),
)
