"""The worker knows its algorithm and branches on it: the worker that allocates in the step (0.5.11 to 0.5.13.post1)."""

from __future__ import annotations

from ddtree_patcher.codemods import Anchor, InsertAfter
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Contract, Refusal, Step, Variant
from ddtree_patcher.shape import Defines, Lacks

from ..files import DDTREE_START, DFLASH_INFO, DFLASH_WORKER, SPEC_INFO, fragments, indented
from . import worker_in_window

_CODE = fragments("dflash_worker.py")
_INIT = "DFlashWorker.__init__"
_PREPARE = "DFlashWorker._prepare_for_speculative_decoding"
_SIZE = Anchor(
    "self.block_size = int(server_args.speculative_num_draft_tokens)",
    scope=_INIT,
    within="if server_args.speculative_num_draft_tokens is None: ...",
)
# Statement → what comes after it, in the order of the file.
_AFTER = {
    Anchor("self.server_args = server_args", scope=_INIT): "keep_algorithm",
    Anchor("draft_server_args = deepcopy(server_args)", scope=_INIT): "draft_width",
    _SIZE: "block_size",
    Anchor("if self._use_fused_kv_materialize: ...", scope=_INIT): "start",
    Anchor("draft_hidden = draft_hidden.view(bs, self.block_size, -1)", scope=_PREPARE): "prepare_verify",
}

_BEFORE = """\
from a import DDTreeVerifyInput, ForwardMode, SpeculativeAlgorithm


class DFlashWorker:
    def __init__(self, server_args):
        self.server_args = server_args
        draft_server_args = deepcopy(server_args)
        if server_args.speculative_num_draft_tokens is None:
            self.block_size = 16
        else:
            self.block_size = int(server_args.speculative_num_draft_tokens)
        if self._use_fused_kv_materialize:
            self._init_fused_kv_helper()

    def _prepare_for_speculative_decoding(self, batch, draft_input):
        draft_hidden = draft_hidden.view(bs, self.block_size, -1)
        draft_next = self.greedy(draft_hidden)
"""
_OTHERS = {
    SPEC_INFO: "class SpeculativeAlgorithm:\n    def from_string(cls, name): ...\n    def is_ddtree(self): ...\n",
    DDTREE_START: "def start_ddtree(worker, server_args, verify_input): ...\n",
    DFLASH_INFO: "class DDTreeVerifyInput:\n    def prepare_for_verify(self, batch, page_size): ...\n",
}


def _after() -> str:
    text = _BEFORE
    for line, name, margin in (
        ("        self.server_args = server_args\n", "keep_algorithm", 8),
        ("        draft_server_args = deepcopy(server_args)\n", "draft_width", 8),
        ("            self.block_size = int(server_args.speculative_num_draft_tokens)\n", "block_size", 12),
        ("            self._init_fused_kv_helper()\n", "start", 8),
        ("        draft_hidden = draft_hidden.view(bs, self.block_size, -1)\n", "prepare_verify", 8),
    ):
        text = text.replace(line, line + indented(_CODE.body(name), " " * margin))
    return text


STEP = Step(
    id="worker-branch",
    summary="the DFLASH worker keeps self.speculative_algorithm and branches on it",
    why=(
        "One worker class serves both algorithms: it drafts a block with the same model and, for DDTREE, makes a tree "
        "of it and verifies that. The drafter keeps the block size that it was trained with, the target takes the "
        "width of the tree."
    ),
    requires=("enum", "flags", "validation", "worker-import", "runtime"),
    contract=(
        Contract(SPEC_INFO, "SpeculativeAlgorithm.from_string", ("cls", "name")),
        Contract(SPEC_INFO, "SpeculativeAlgorithm.is_ddtree", ("self",)),
        Contract(DDTREE_START, "start_ddtree", ("worker", "server_args", "verify_input")),
    ),
    variants=(
        Variant(
            "dflash_worker",
            when=(Defines(DFLASH_WORKER, "DFlashWorker"),),
            edits=tuple(InsertAfter(DFLASH_WORKER, anchor, _CODE.body(name)) for anchor, name in _AFTER.items()),
            contract=(
                Contract(DFLASH_WORKER, "SpeculativeAlgorithm"),
                Contract(DFLASH_WORKER, "ForwardMode"),
                Contract(DFLASH_WORKER, "DDTreeVerifyInput"),
                Contract(DFLASH_WORKER, _INIT, ("self", "server_args")),
                Contract(DFLASH_WORKER, _PREPARE, ("self", "batch", "draft_input")),
                Contract(DFLASH_INFO, "DDTreeVerifyInput.prepare_for_verify", ("self", "batch", "page_size")),
            ),
        ),
        *worker_in_window.variants(Lacks(Defines(DFLASH_WORKER, "DFlashWorker"))),
    ),
    cases=(
        Case("dflash_worker", {DFLASH_WORKER: _BEFORE, **_OTHERS}, {DFLASH_WORKER: _after()}),
        *worker_in_window.CASES,
    ),
    refusals=(
        Refusal(
            {DFLASH_WORKER: _BEFORE.replace("self.server_args =", "self.args ="), **_OTHERS}, StepOutcome.ANCHOR_MISSING
        ),
        Refusal(
            {DFLASH_WORKER: _BEFORE.replace("draft_hidden.view(", "draft_hidden.reshape("), **_OTHERS},
            StepOutcome.ANCHOR_MISSING,
        ),
        Refusal({DFLASH_WORKER: _BEFORE, **_OTHERS, SPEC_INFO: "x = 1\n"}, StepOutcome.PRECONDITION_FAILED),
        Refusal({DFLASH_WORKER: _BEFORE.replace("DFlashWorker", "Worker")}, StepOutcome.ANCHOR_MISSING),
        *worker_in_window.REFUSALS,
    ),
)
