"""A request's row in the table of slots has room for a tree at the end of the context."""

from __future__ import annotations

from ddtree_patcher.codemods import Anchor, InsertBefore
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Contract, Refusal, Step, Variant
from ddtree_patcher.shape import Defines, HasFile, Holds, Lacks

from ..files import ALLOCATION_SIZING, DDTREE_CONFIG, DFLASH_WORKER, MEM_CACHE_COMMON, fragments, indented

_CODE = fragments("allocation_sizing.py")
_SCOPE = "get_req_to_token_extra_context_len"
_RETURN = Anchor("return extra", scope=_SCOPE)
_LOCAL = Holds(ALLOCATION_SIZING, Anchor("page_size = ...", scope=_SCOPE))


def _edits(path: str, name: str) -> tuple[InsertBefore, ...]:
    return (InsertBefore(path, _RETURN, _CODE.body(name)),)


_OTHERS = {DDTREE_CONFIG: "def row_headroom(page_size): ...\n"}
_OF_ARGUMENTS = """\
def get_req_to_token_extra_context_len(server_args):
    extra = 4 + server_args.max_speculative_num_draft_tokens
    return extra
"""
_LOCAL_BEFORE = """\
from a import get_spec


def get_req_to_token_extra_context_len():
    extra = 4 + max_speculative_num_draft_tokens()
    page_size = get_alloc_page_size()
    return extra
"""


def _after(before: str, name: str) -> str:
    return before.replace("    return extra\n", indented(_CODE.body(name), " " * 4) + "    return extra\n")


STEP = Step(
    id="row-headroom",
    summary="a request's row in the table of slots has room for a tree at the end of the context",
    why=(
        "From 0.5.14 on the scheduler reserves two verify widths behind what a request has, and its row ends one width "
        "and four slots behind the context. Beyond it lies the row of the next request."
    ),
    requires=("enum", "runtime"),
    variants=(
        Variant("allocated_in_the_step", when=(HasFile(DFLASH_WORKER),)),
        Variant(
            "common",
            when=(Lacks(HasFile(DFLASH_WORKER)), Defines(MEM_CACHE_COMMON, _SCOPE)),
            edits=_edits(MEM_CACHE_COMMON, "headroom_of_arguments"),
            contract=(
                Contract(MEM_CACHE_COMMON, _SCOPE, ("server_args",)),
                Contract(DDTREE_CONFIG, "row_headroom", ("page_size",)),
            ),
        ),
        Variant(
            "sizing_of_arguments",
            when=(Lacks(HasFile(DFLASH_WORKER)), Defines(ALLOCATION_SIZING, _SCOPE), Lacks(_LOCAL)),
            edits=_edits(ALLOCATION_SIZING, "headroom_of_arguments"),
            contract=(
                Contract(ALLOCATION_SIZING, _SCOPE, ("server_args",)),
                Contract(DDTREE_CONFIG, "row_headroom", ("page_size",)),
            ),
        ),
        Variant(
            "sizing",
            when=(Lacks(HasFile(DFLASH_WORKER)), _LOCAL),
            edits=_edits(ALLOCATION_SIZING, "headroom"),
            contract=(
                Contract(ALLOCATION_SIZING, "get_spec"),
                Contract(DDTREE_CONFIG, "row_headroom", ("page_size",)),
            ),
        ),
    ),
    cases=(
        Case("allocated_in_the_step", {DFLASH_WORKER: "x = 1\n", MEM_CACHE_COMMON: _OF_ARGUMENTS}, {}),
        Case(
            "common",
            {MEM_CACHE_COMMON: _OF_ARGUMENTS, **_OTHERS},
            {MEM_CACHE_COMMON: _after(_OF_ARGUMENTS, "headroom_of_arguments")},
        ),
        Case(
            "sizing_of_arguments",
            {ALLOCATION_SIZING: _OF_ARGUMENTS, **_OTHERS},
            {ALLOCATION_SIZING: _after(_OF_ARGUMENTS, "headroom_of_arguments")},
        ),
        Case(
            "sizing",
            {ALLOCATION_SIZING: _LOCAL_BEFORE, **_OTHERS},
            {ALLOCATION_SIZING: _after(_LOCAL_BEFORE, "headroom")},
        ),
    ),
    refusals=(
        Refusal(
            {ALLOCATION_SIZING: _LOCAL_BEFORE.replace("return extra", "return more"), **_OTHERS},
            StepOutcome.ANCHOR_MISSING,
        ),
        Refusal({ALLOCATION_SIZING: _LOCAL_BEFORE}, StepOutcome.PRECONDITION_FAILED),
    ),
)
