"""The worker imports the verify input of a tree."""

from __future__ import annotations

from ddtree_patcher.codemods import EnsureImport
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Contract, Refusal, Step, Variant
from ddtree_patcher.shape import HasFile, Lacks

from ..files import DFLASH_INFO, DFLASH_WORKER, DFLASH_WORKER_V2


def _imports(worker: str) -> tuple[EnsureImport, ...]:
    return (EnsureImport(worker, "sglang.srt.speculative.dflash_info", "DDTreeVerifyInput"),)


_BEFORE = "from sglang.srt.speculative.dflash_info import DFlashDraftInput, DFlashVerifyInput\n"
_AFTER = """\
from sglang.srt.speculative.dflash_info import (
    DDTreeVerifyInput,
    DFlashDraftInput,
    DFlashVerifyInput,
)
"""
_BEFORE_V2 = "from sglang.srt.speculative.dflash_info import DFlashVerifyInput\n"
_AFTER_V2 = _AFTER.replace("    DFlashDraftInput,\n", "")
_DEFINED = {DFLASH_INFO: "class DDTreeVerifyInput: ...\n"}

STEP = Step(
    id="worker-import",
    summary="the DFLASH worker imports DDTreeVerifyInput",
    why="The worker makes the verify inputs; it can only make what it imports.",
    requires=("verify-input",),
    contract=(Contract(DFLASH_INFO, "DDTreeVerifyInput"),),
    variants=(
        Variant("dflash_worker", when=(HasFile(DFLASH_WORKER),), edits=_imports(DFLASH_WORKER)),
        Variant(
            "dflash_worker_v2",
            when=(HasFile(DFLASH_WORKER_V2), Lacks(HasFile(DFLASH_WORKER))),
            edits=_imports(DFLASH_WORKER_V2),
        ),
    ),
    cases=(
        Case("dflash_worker", {DFLASH_WORKER: _BEFORE, **_DEFINED}, {DFLASH_WORKER: _AFTER}),
        Case("dflash_worker_v2", {DFLASH_WORKER_V2: _BEFORE_V2, **_DEFINED}, {DFLASH_WORKER_V2: _AFTER_V2}),
    ),
    refusals=(
        Refusal({DFLASH_WORKER: "import torch\n", **_DEFINED}, StepOutcome.ANCHOR_MISSING),
        Refusal({DFLASH_WORKER_V2: "import torch\n", **_DEFINED}, StepOutcome.ANCHOR_MISSING),
        Refusal({DFLASH_WORKER: _BEFORE, DFLASH_INFO: "import torch\n"}, StepOutcome.PRECONDITION_FAILED),
        Refusal(_DEFINED, StepOutcome.FILE_MISSING),
    ),
)
