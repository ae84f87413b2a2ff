"""The worker knows its algorithm and branches on it."""

from __future__ import annotations

from ddtree_patcher.codemods import Anchor, InsertAfter
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Contract, Refusal, Step, Variant
from ddtree_patcher.shape import Defines

from ..files import DDTREE_ARGS, DFLASH_WORKER, SPEC_INFO, fragments

_CODE = fragments("dflash_worker.py").body("keep_algorithm")
_ANCHOR = Anchor("self.server_args = server_args", scope="DFlashWorker.__init__")

_BEFORE = """\
from a import SpeculativeAlgorithm


class DFlashWorker:
    def __init__(self, server_args):
        self.server_args = server_args
        self.device = "cpu"
"""
_OTHERS = {
    SPEC_INFO: "class SpeculativeAlgorithm:\n    def from_string(cls, name): ...\n    def is_ddtree(self): ...\n",
    DDTREE_ARGS: "def stop_ddtree_worker(): ...\n",
}

STEP = Step(
    id="worker-branch",
    summary="the DFLASH worker keeps self.speculative_algorithm and branches on it",
    why=(
        "One worker class serves both algorithms. Until trees are verified, its DDTREE branch stops the server at "
        "start-up: a block verified as a chain under DDTREE's name would be silently another algorithm."
    ),
    requires=("enum", "flags", "validation", "worker-import"),
    variants=(
        Variant(
            "dflash_worker",
            when=(Defines(DFLASH_WORKER, "DFlashWorker"),),
            edits=(InsertAfter(DFLASH_WORKER, _ANCHOR, _CODE),),
            contract=(
                Contract(DFLASH_WORKER, "SpeculativeAlgorithm"),
                Contract(DFLASH_WORKER, "DFlashWorker.__init__", ("self", "server_args")),
                Contract(SPEC_INFO, "SpeculativeAlgorithm.from_string", ("cls", "name")),
                Contract(SPEC_INFO, "SpeculativeAlgorithm.is_ddtree", ("self",)),
                Contract(DDTREE_ARGS, "stop_ddtree_worker"),
            ),
        ),
    ),
    cases=(
        Case(
            "dflash_worker",
            {DFLASH_WORKER: _BEFORE, **_OTHERS},
            {
                DFLASH_WORKER: _BEFORE.replace(
                    "= server_args\n",
                    "= server_args\n"
                    + "".join(f"        {line}" if line.strip() else line for line in _CODE.splitlines(True)),
                )
            },
        ),
    ),
    refusals=(
        Refusal(
            {DFLASH_WORKER: _BEFORE.replace("self.server_args =", "self.args ="), **_OTHERS}, StepOutcome.ANCHOR_MISSING
        ),
        Refusal({DFLASH_WORKER: _BEFORE, **_OTHERS, SPEC_INFO: "x = 1\n"}, StepOutcome.PRECONDITION_FAILED),
        Refusal({DFLASH_WORKER: _BEFORE.replace("DFlashWorker", "Worker")}, StepOutcome.ANCHOR_MISSING),
    ),
)
