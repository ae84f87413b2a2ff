"""Requests that a tree cannot serve exactly are refused."""

from __future__ import annotations

from ddtree_patcher.codemods import Anchor, InsertAfter
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Contract, Refusal, Step, Variant
from ddtree_patcher.shape import HasFile

from ..files import DDTREE_ARGS, SCHEDULER, SPEC_INFO, fragments, indented

_CODE = fragments("scheduler.py").body("validate_request")
_DFLASH = Anchor("error_msg = validate_dflash_request(req)", scope="Scheduler.handle_generate_request")

_BEFORE = """\
class Scheduler:
    def handle_generate_request(self, req):
        if self.spec_algorithm.is_dflash():
            error_msg = validate_dflash_request(req)
            if error_msg is not None:
                return
"""
_OTHERS = {
    SPEC_INFO: "class SpeculativeAlgorithm:\n    def is_ddtree(self): ...\n",
    DDTREE_ARGS: "def validate_ddtree_request(req, width, kv_cache_slots): ...\n",
}

STEP = Step(
    id="requests",
    summary="requests that a tree cannot serve exactly are refused",
    why=(
        "A penalty depends on the tokens before, which differ from branch to branch; a tree needs room for its nodes. "
        "DFLASH's own refusals (log-probabilities, grammars) hold for DDTREE as they are."
    ),
    requires=("enum", "flags"),
    variants=(
        Variant(
            "handle_generate_request",
            when=(HasFile(SCHEDULER),),
            edits=(InsertAfter(SCHEDULER, _DFLASH, _CODE),),
            contract=(
                Contract(SPEC_INFO, "SpeculativeAlgorithm.is_ddtree", ("self",)),
                Contract(DDTREE_ARGS, "validate_ddtree_request", ("req", "width", "kv_cache_slots")),
            ),
        ),
    ),
    cases=(
        Case(
            "handle_generate_request",
            {SCHEDULER: _BEFORE, **_OTHERS},
            {
                SCHEDULER: _BEFORE.replace(
                    "            if error_msg is not", indented(_CODE, " " * 12) + "            if error_msg is not"
                )
            },
        ),
    ),
    refusals=(
        Refusal(
            {SCHEDULER: _BEFORE.replace("error_msg = validate_", "message = validate_"), **_OTHERS},
            StepOutcome.ANCHOR_MISSING,
        ),
        Refusal({SCHEDULER: _BEFORE, SPEC_INFO: _OTHERS[SPEC_INFO]}, StepOutcome.PRECONDITION_FAILED),
        Refusal({}, StepOutcome.FILE_MISSING),
    ),
)
