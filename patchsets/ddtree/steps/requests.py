"""Requests that a tree cannot serve exactly are refused."""

from __future__ import annotations

from ddtree_patcher.codemods import Anchor, InsertAfter
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Contract, Refusal, Step, Variant
from ddtree_patcher.shape import Defines, Holds, Lacks, Shape

from ..files import DDTREE_ARGS, RUNTIME_CONTEXT, SCHEDULER, SPEC_INFO, fragments, indented

_CODE = fragments("scheduler.py")
_METHOD = "Scheduler.handle_generate_request"
_INNER_METHOD = "Scheduler._handle_generate_request"  # where it is, the other one only calls it
_PUBLISHED = Defines(RUNTIME_CONTEXT, "get_spec")


_BRANCH = "if self.spec_algorithm.is_dflash(): ..."
_FAMILY_BRANCH = "if self.spec_algorithm.is_dflash_family(): ..."
_OF_FAMILY = Holds(SCHEDULER, Anchor(_FAMILY_BRANCH, scope=_METHOD))


def _variant(name: str, method: str, branch: str, code: str, *when: Shape) -> Variant:
    dflash = Anchor("error_msg = validate_dflash_request(req, ...)", scope=method, within=branch)
    return Variant(
        name,
        when=(Defines(SCHEDULER, method), *when),
        edits=(InsertAfter(SCHEDULER, dflash, _CODE.body(code)),),
        contract=(
            Contract(SPEC_INFO, "SpeculativeAlgorithm.is_ddtree", ("self",)),
            Contract(DDTREE_ARGS, "validate_ddtree_request", ("req", "width", "kv_cache_slots")),
        ),
    )


_BEFORE = """\
class Scheduler:
    def handle_generate_request(self, req):
        if self.spec_algorithm.is_dflash():
            error_msg = validate_dflash_request(req)
            if error_msg is not None:
                return
"""
_OVERLAP_BEFORE = _BEFORE.replace("is_dflash()", "is_dflash_family()").replace("(req)", "(req, self.enable_overlap)")
_INNER_BEFORE = _OVERLAP_BEFORE.replace(
    "    def handle_generate_request(self, req):\n",
    "    def handle_generate_request(self, req):\n        return self._handle_generate_request(req)\n\n"
    "    def _handle_generate_request(self, req):\n",
)
_OTHERS = {
    SPEC_INFO: "class SpeculativeAlgorithm:\n    def is_ddtree(self): ...\n",
    DDTREE_ARGS: "def validate_ddtree_request(req, width, kv_cache_slots): ...\n",
}
_CONTEXT = {RUNTIME_CONTEXT: "def get_spec(): ...\n"}


def _after(before: str, code: str) -> dict[str, str]:
    place = "            if error_msg is not"
    return {SCHEDULER: before.replace(place, indented(_CODE.body(code), " " * 12) + place)}


STEP = Step(
    id="requests",
    summary="requests that a tree cannot serve exactly are refused",
    why=(
        "A penalty depends on the tokens before, which differ from branch to branch; a tree needs room for its nodes. "
        "What DFLASH itself refuses in a release is refused for DDTREE as it is."
    ),
    requires=("enum", "flags"),
    variants=(
        _variant("arguments", _METHOD, _BRANCH, "validate_request", Lacks(_PUBLISHED), Lacks(_OF_FAMILY)),
        _variant("arguments_of_family", _METHOD, _FAMILY_BRANCH, "validate_request", Lacks(_PUBLISHED), _OF_FAMILY),
        _variant(
            "namespace",
            _METHOD,
            _FAMILY_BRANCH,
            "validate_request_by_namespace",
            _PUBLISHED,
            Lacks(Defines(SCHEDULER, _INNER_METHOD)),
        ),
        _variant("inner_method", _INNER_METHOD, _FAMILY_BRANCH, "validate_request_by_namespace", _PUBLISHED),
    ),
    cases=(
        Case("arguments", {SCHEDULER: _BEFORE, **_OTHERS}, _after(_BEFORE, "validate_request")),
        Case(
            "arguments_of_family", {SCHEDULER: _OVERLAP_BEFORE, **_OTHERS}, _after(_OVERLAP_BEFORE, "validate_request")
        ),
        Case(
            "namespace",
            {SCHEDULER: _OVERLAP_BEFORE, **_OTHERS, **_CONTEXT},
            _after(_OVERLAP_BEFORE, "validate_request_by_namespace"),
        ),
        Case(
            "inner_method",
            {SCHEDULER: _INNER_BEFORE, **_OTHERS, **_CONTEXT},
            _after(_INNER_BEFORE, "validate_request_by_namespace"),
        ),
    ),
    refusals=(
        Refusal(
            {SCHEDULER: _BEFORE.replace("error_msg = validate_", "message = validate_"), **_OTHERS},
            StepOutcome.ANCHOR_MISSING,
        ),
        Refusal(
            {SCHEDULER: _BEFORE.replace("handle_generate_request", "handle_request"), **_OTHERS},
            StepOutcome.ANCHOR_MISSING,
        ),
        Refusal({SCHEDULER: _BEFORE, SPEC_INFO: _OTHERS[SPEC_INFO]}, StepOutcome.PRECONDITION_FAILED),
        Refusal({}, StepOutcome.FILE_MISSING),
    ),
)
