"""The worker imports the verify input of a tree."""

from __future__ import annotations

from ddtree_patcher.codemods import EnsureImport
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Contract, Refusal, Step, Variant
from ddtree_patcher.shape import HasFile

from ..files import DFLASH_INFO, DFLASH_WORKER

_BEFORE = "from sglang.srt.speculative.dflash_info import DFlashDraftInput, DFlashVerifyInput\n"
_AFTER = """\
from sglang.srt.speculative.dflash_info import (
    DDTreeVerifyInput,
    DFlashDraftInput,
    DFlashVerifyInput,
)
"""

STEP = Step(
    id="worker-import",
    summary="the DFLASH worker imports DDTreeVerifyInput",
    why="The worker makes the verify inputs; it can only make what it imports.",
    requires=("verify-input",),
    variants=(
        Variant(
            "dflash_worker",
            when=(HasFile(DFLASH_WORKER),),
            edits=(EnsureImport(DFLASH_WORKER, "sglang.srt.speculative.dflash_info", "DDTreeVerifyInput"),),
            contract=(Contract(DFLASH_INFO, "DDTreeVerifyInput"),),
        ),
    ),
    cases=(
        Case(
            "dflash_worker",
            {DFLASH_WORKER: _BEFORE, DFLASH_INFO: "class DDTreeVerifyInput: ...\n"},
            {DFLASH_WORKER: _AFTER},
        ),
    ),
    refusals=(
        Refusal(
            {DFLASH_WORKER: "import torch\n", DFLASH_INFO: "class DDTreeVerifyInput: ...\n"},
            StepOutcome.ANCHOR_MISSING,
        ),
        Refusal({DFLASH_WORKER: _BEFORE, DFLASH_INFO: "import torch\n"}, StepOutcome.PRECONDITION_FAILED),
        Refusal({}, StepOutcome.FILE_MISSING),
    ),
)
