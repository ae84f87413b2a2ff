"""The verify input of a tree."""

from __future__ import annotations

from ddtree_patcher.codemods import AddClass
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Contract, Refusal, Step, Variant
from ddtree_patcher.shape import Defines

from ..files import DDTREE_WORKER, DFLASH_INFO, fragments

_CLASS = fragments("dflash_info.py").definition("DDTreeVerifyInput")
_NAMES = ("dataclass", "torch", "LogitsProcessorOutput", "ScheduleBatch")

_BEFORE = """\
from dataclasses import dataclass
import torch
from a import LogitsProcessorOutput, ScheduleBatch


@dataclass
class DFlashVerifyInput:
    def prepare_for_verify(self, batch, page_size, *, build_custom_mask=True): ...

    def verify(self, *, batch, logits_output, page_size): ...
"""
_OTHERS = {DDTREE_WORKER: "def linearise(verify_input, batch, logits_output): ...\n"}

STEP = Step(
    id="verify-input",
    summary="DDTreeVerifyInput is in dflash_info.py",
    why=(
        "A tree is verified with the same metadata as a DFLASH block and another mask, so its input is a DFLASH input "
        "that carries the tree's links and never falls back to the causal mask or the chain's commit."
    ),
    requires=("enum", "runtime"),
    variants=(
        Variant(
            "input_verifies",
            when=(Defines(DFLASH_INFO, "DFlashVerifyInput.verify"),),
            edits=(AddClass(DFLASH_INFO, _CLASS, needs=("DFlashVerifyInput",)),),
            contract=(
                Contract(
                    DFLASH_INFO,
                    "DFlashVerifyInput.prepare_for_verify",
                    ("self", "batch", "page_size", "build_custom_mask"),
                ),
                Contract(DFLASH_INFO, "DFlashVerifyInput.verify", ("self", "batch", "logits_output", "page_size")),
                *(Contract(DFLASH_INFO, name) for name in _NAMES),
                Contract(DDTREE_WORKER, "linearise", ("verify_input", "batch", "logits_output")),
            ),
        ),
    ),
    postcondition=(Defines(DFLASH_INFO, "DDTreeVerifyInput"),),
    cases=(Case("input_verifies", {DFLASH_INFO: _BEFORE, **_OTHERS}, {DFLASH_INFO: f"{_BEFORE}\n\n{_CLASS}"}),),
    refusals=(
        Refusal({DFLASH_INFO: _BEFORE.replace(", page_size", ""), **_OTHERS}, StepOutcome.PRECONDITION_FAILED),
        Refusal({DFLASH_INFO: _BEFORE.replace("import torch\n", ""), **_OTHERS}, StepOutcome.PRECONDITION_FAILED),
        Refusal({DFLASH_INFO: _BEFORE + "\n\nclass DDTreeVerifyInput: ...\n", **_OTHERS}, StepOutcome.HALF_UPSTREAMED),
        Refusal(
            {DFLASH_INFO: _BEFORE.replace("verify(self, *,", "check(self, *,"), **_OTHERS}, StepOutcome.ANCHOR_MISSING
        ),
        Refusal({DFLASH_INFO: _BEFORE, DDTREE_WORKER: "x = 1\n"}, StepOutcome.PRECONDITION_FAILED),
        Refusal({}, StepOutcome.FILE_MISSING),
    ),
)
