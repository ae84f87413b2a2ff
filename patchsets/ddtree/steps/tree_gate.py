"""The kernels of a hybrid target's recurrent layers follow the links of a tree."""

from __future__ import annotations

from ddtree_patcher.codemods import AddField, Anchor, InsertAfter
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Contract, Refusal, Step, Variant
from ddtree_patcher.shape import Holds

from ..files import DDTREE_RECURRENT, DFLASH_INFO, HYBRID_BACKEND, SPEC_INFO, fragments, indented

_GATE = fragments("hybrid_linear_attn_backend.py").body("open_gate")
_LINKS = fragments("dflash_verify_input.py").body("DFlashVerifyInput")
_TOPK = Anchor("self.topk = ... or 0", scope="MambaAttnBackendBase.__init__")

_BEFORE = """\
class MambaAttnBackendBase:
    def __init__(self, model_runner):
        self.topk = model_runner.server_args.speculative_eagle_topk or 0
        self.forward_metadata = None
"""
_PUBLISHED_BEFORE = _BEFORE.replace("model_runner.server_args.", "get_spec().")
_INPUT_BEFORE = """\
class DFlashVerifyInput:
    draft_token_num: int
    topk: int = 1
    custom_mask: torch.Tensor | None = None
"""
_OTHERS = {
    SPEC_INFO: "class SpeculativeAlgorithm:\n    def is_ddtree(self): ...\n",
    DDTREE_RECURRENT: "def tree_gate(model_runner, topk): ...\n",
}


def _after(before: str) -> dict[str, str]:
    margin = "        self.forward_metadata"
    return {
        HYBRID_BACKEND: before.replace(margin, indented(_GATE, " " * 8) + margin),
        DFLASH_INFO: _INPUT_BEFORE.replace("topk: int = 1\n", "topk: int = 1\n" + indented(_LINKS, " " * 4)),
    }


STEP = Step(
    id="tree-gate",
    summary="kernels of recurrent layers take the parent of a node from the tree, not from the order of the nodes",
    why=(
        "SGLang's kernels can do it, and do it where a backend is built for more than one child a node. DFLASH sets "
        "that number to one, so each node would inherit the state of its neighbour. A backend built for a tree asks "
        "every verify input for links, those of rehearsed forwards among them."
    ),
    requires=("enum", "runtime", "verify-input"),
    variants=(
        Variant(
            "topk",
            when=(Holds(HYBRID_BACKEND, _TOPK),),
            edits=(
                InsertAfter(HYBRID_BACKEND, _TOPK, _GATE),
                AddField(DFLASH_INFO, "DFlashVerifyInput", _LINKS, after="topk"),
            ),
            contract=(
                Contract(SPEC_INFO, "SpeculativeAlgorithm.is_ddtree", ("self",)),
                Contract(DDTREE_RECURRENT, "tree_gate", ("model_runner", "topk")),
                Contract(HYBRID_BACKEND, "MambaAttnBackendBase.__init__", ("self", "model_runner")),
            ),
        ),
    ),
    cases=tuple(
        Case("topk", {HYBRID_BACKEND: before, DFLASH_INFO: _INPUT_BEFORE, **_OTHERS}, _after(before))
        for before in (_BEFORE, _PUBLISHED_BEFORE)
    ),
    refusals=(
        Refusal(
            {HYBRID_BACKEND: _BEFORE.replace("self.topk", "self.children"), DFLASH_INFO: _INPUT_BEFORE, **_OTHERS},
            StepOutcome.ANCHOR_MISSING,
        ),
        Refusal(
            {HYBRID_BACKEND: _BEFORE, DFLASH_INFO: _INPUT_BEFORE.replace("topk", "width"), **_OTHERS},
            StepOutcome.ANCHOR_MISSING,
        ),
        Refusal(
            {HYBRID_BACKEND: _BEFORE, DFLASH_INFO: _INPUT_BEFORE + "    retrieve_next_token = 1\n", **_OTHERS},
            StepOutcome.HALF_UPSTREAMED,
        ),
        Refusal(
            {HYBRID_BACKEND: _BEFORE, DFLASH_INFO: _INPUT_BEFORE, SPEC_INFO: _OTHERS[SPEC_INFO]},
            StepOutcome.PRECONDITION_FAILED,
        ),
        Refusal({DFLASH_INFO: _INPUT_BEFORE, **_OTHERS}, StepOutcome.FILE_MISSING),
    ),
)
