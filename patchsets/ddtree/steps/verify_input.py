"""The verify input of a tree."""

from __future__ import annotations

from ddtree_patcher.codemods import AddClass, Anchor, InsertAfter
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Contract, Refusal, Step, Variant
from ddtree_patcher.shape import Defines, HasFile, Lacks

from ..files import DDTREE_INPUT, DDTREE_WORKER, DFLASH_INFO, fragments

_COMMITS = fragments("dflash_info.py").definition("DDTreeVerifyInput")
_IN_WINDOW = fragments("dflash_info_v2.py").definition("DDTreeVerifyInput")
_VERIFY = Defines(DFLASH_INFO, "DFlashVerifyInput.verify")
_FIELDS = "from sglang.srt.speculative.ddtree_input import DraftTreeFields\n"
_IMPORT = InsertAfter(
    DFLASH_INFO, Anchor("from sglang.srt.speculative.spec_info import SpecInput, SpecInputType"), _FIELDS
)

_HEAD = """\
from dataclasses import dataclass
import torch
from a import ForwardBatch, LogitsProcessorOutput, ScheduleBatch
from sglang.srt.speculative.spec_info import SpecInput, SpecInputType
"""
_COMMITS_BEFORE = f"""\
{_HEAD}

@dataclass
class DFlashVerifyInput:
    def prepare_for_verify(self, batch, page_size, *, build_custom_mask=True): ...

    def verify(self, *, batch, logits_output, page_size): ...
"""
_IN_WINDOW_BEFORE = f"""\
{_HEAD}

@dataclass
class DFlashVerifyInput:
    def prepare_for_verify(self, batch, target_worker): ...
"""
_OTHERS = {
    DDTREE_INPUT: "class DraftTreeFields:\n    def mask_tree(self, seq_lens, host_lens): ...\n\n"
    "    def place_tree(self, batch, target_runner): ...\n",
    DDTREE_WORKER: "def linearise(verify_input, batch, logits_output): ...\n",
}


def _after(before: str, added: str) -> str:
    return before.replace(_HEAD, _HEAD + _FIELDS) + f"\n\n{added}"


STEP = Step(
    id="verify-input",
    summary="DDTreeVerifyInput is in dflash_info.py",
    why=(
        "A tree is verified with the same metadata as a DFLASH block and another mask, so its input is a DFLASH input "
        "that carries the tree's links and never falls back to the causal mask or the chain's commit."
    ),
    requires=("enum", "runtime"),
    contract=(Contract(DFLASH_INFO, "dataclass"), Contract(DFLASH_INFO, "ScheduleBatch")),
    variants=(
        Variant(
            "input_verifies",
            when=(_VERIFY,),
            edits=(_IMPORT, AddClass(DFLASH_INFO, _COMMITS, needs=("DFlashVerifyInput",))),
            contract=(
                Contract(
                    DFLASH_INFO,
                    "DFlashVerifyInput.prepare_for_verify",
                    ("self", "batch", "page_size", "build_custom_mask"),
                    called=True,
                ),
                Contract(
                    DFLASH_INFO,
                    "DFlashVerifyInput.verify",
                    ("self", "batch", "logits_output", "page_size"),
                    called=True,
                ),
                *(Contract(DFLASH_INFO, name) for name in ("torch", "LogitsProcessorOutput")),
                Contract(DDTREE_INPUT, "DraftTreeFields.mask_tree", ("self", "seq_lens", "host_lens")),
                Contract(DDTREE_WORKER, "linearise", ("verify_input", "batch", "logits_output")),
            ),
        ),
        Variant(
            "worker_verifies",
            when=(HasFile(DFLASH_INFO), Lacks(_VERIFY)),
            edits=(_IMPORT, AddClass(DFLASH_INFO, _IN_WINDOW, needs=("DFlashVerifyInput",))),
            contract=(
                Contract(
                    DFLASH_INFO, "DFlashVerifyInput.prepare_for_verify", ("self", "batch", "target_worker"), called=True
                ),
                Contract(DFLASH_INFO, "ForwardBatch"),
                Contract(DDTREE_INPUT, "DraftTreeFields.place_tree", ("self", "batch", "target_runner")),
            ),
        ),
    ),
    postcondition=(Defines(DFLASH_INFO, "DDTreeVerifyInput"),),
    cases=(
        Case(
            "input_verifies",
            {DFLASH_INFO: _COMMITS_BEFORE, **_OTHERS},
            {DFLASH_INFO: _after(_COMMITS_BEFORE, _COMMITS)},
        ),
        Case(
            "worker_verifies",
            {DFLASH_INFO: _IN_WINDOW_BEFORE, **_OTHERS},
            {DFLASH_INFO: _after(_IN_WINDOW_BEFORE, _IN_WINDOW)},
        ),
    ),
    refusals=(
        Refusal({DFLASH_INFO: _COMMITS_BEFORE.replace(", page_size", ""), **_OTHERS}, StepOutcome.PRECONDITION_FAILED),
        Refusal(
            {DFLASH_INFO: _COMMITS_BEFORE.replace("import torch\n", ""), **_OTHERS}, StepOutcome.PRECONDITION_FAILED
        ),
        Refusal(
            {DFLASH_INFO: _COMMITS_BEFORE + "\n\nclass DDTreeVerifyInput: ...\n", **_OTHERS},
            StepOutcome.HALF_UPSTREAMED,
        ),
        Refusal(
            {DFLASH_INFO: _COMMITS_BEFORE.replace("verify(self, *,", "check(self, *,"), **_OTHERS},
            StepOutcome.PRECONDITION_FAILED,
        ),
        Refusal({DFLASH_INFO: _COMMITS_BEFORE, DDTREE_WORKER: "x = 1\n"}, StepOutcome.PRECONDITION_FAILED),
        Refusal({DFLASH_INFO: _IN_WINDOW_BEFORE, DDTREE_INPUT: "x = 1\n"}, StepOutcome.PRECONDITION_FAILED),
        Refusal(
            {DFLASH_INFO: _IN_WINDOW_BEFORE.replace("target_worker", "worker"), **_OTHERS},
            StepOutcome.PRECONDITION_FAILED,
        ),
        Refusal({}, StepOutcome.FILE_MISSING),
    ),
)
