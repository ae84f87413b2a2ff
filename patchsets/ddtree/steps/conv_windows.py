"""The pool keeps a convolution window for every node of a tree."""

from __future__ import annotations

from ddtree_patcher.codemods import Anchor, InsertBefore
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Contract, Refusal, Step, Variant
from ddtree_patcher.shape import Defines, HasFile, Lacks

from ..files import DDTREE_CONFIG, MEMORY_POOL, fragments, indented

_CODE = fragments("memory_pool.py").body("dense_windows")
_SCOPE = "conv_window_dedup_enabled"

_BEFORE = """\
def conv_window_dedup_enabled(is_npu, is_cpu, speculative_eagle_topk):
    \"\"\"Whether windows may overlap.\"\"\"
    return not is_npu and not is_cpu and speculative_eagle_topk <= 1
"""
_OTHERS = {DDTREE_CONFIG: "def verifies_trees(): ...\n"}

STEP = Step(
    id="conv-windows",
    summary="the windows that short convolutions keep for the nodes of a tree do not overlap in the pool",
    why=(
        "From 0.5.14 on neighbouring steps of a chain share their common columns. Neighbouring nodes of a tree have "
        "other ancestors, so one would overwrite the window of another: right logits, and a wrong state afterwards."
    ),
    requires=("enum", "runtime"),
    variants=(
        Variant("dense_anyway", when=(HasFile(MEMORY_POOL), Lacks(Defines(MEMORY_POOL, _SCOPE)))),
        Variant(
            "may_overlap",
            when=(Defines(MEMORY_POOL, _SCOPE),),
            edits=(InsertBefore(MEMORY_POOL, Anchor("return ...", scope=_SCOPE), _CODE),),
            contract=(Contract(DDTREE_CONFIG, "verifies_trees", ()),),
        ),
    ),
    cases=(
        Case("dense_anyway", {MEMORY_POOL: "class MambaPool: ...\n"}, {}),
        Case(
            "may_overlap",
            {MEMORY_POOL: _BEFORE, **_OTHERS},
            {MEMORY_POOL: _BEFORE.replace("    return", indented(_CODE, "    ") + "    return")},
        ),
    ),
    refusals=(
        Refusal({MEMORY_POOL: _BEFORE.replace("return", "answer ="), **_OTHERS}, StepOutcome.ANCHOR_MISSING),
        Refusal(
            {MEMORY_POOL: _BEFORE + "    return True\n", **_OTHERS},
            StepOutcome.ANCHOR_AMBIGUOUS,
        ),
        Refusal({MEMORY_POOL: _BEFORE}, StepOutcome.PRECONDITION_FAILED),
        Refusal(_OTHERS, StepOutcome.FILE_MISSING),
    ),
)
