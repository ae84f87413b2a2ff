"""A verify forward does not clear the recurrent states that it begins with: a fault of two releases, mended for all."""

from __future__ import annotations

from ddtree_patcher.codemods import Anchor, EditCondition
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Refusal, Step, Variant
from ddtree_patcher.shape import Defines, HasFile, Holds, Lacks

from ..files import HYBRID_BACKEND

_SCOPE = "MambaAttnBackendBase._execute_deferred_mamba_cow_and_clear"
_MODE = "forward_batch.forward_mode"
_OLD = f"not {_MODE}.is_extend() or self.is_draft_worker"
_NEW = f"not {_MODE}.is_extend() or {_MODE}.is_target_verify() or self.is_draft_worker"
_FOUR = Holds(HYBRID_BACKEND, Anchor("if not ... or ... or ... or ...: ...", scope=_SCOPE))

_BEFORE = f"""\
class MambaAttnBackendBase:
    def _execute_deferred_mamba_cow_and_clear(self, forward_batch):
        if {_OLD}:
            return
        self.clear()
"""
_LATER = _BEFORE.replace(" or self.", " or verifies or drafts or self.")

STEP = Step(
    id="deferred-clear",
    summary="recurrent states are cleared before a prefill alone, and not before each verify forward",
    why=(
        "0.5.13 and 0.5.13.post1 clear, in every verify forward that runs without a graph, the states of the requests "
        "that the last prefill brought: a verify forward counts as an extension there, and the batch still lists them. "
        "It makes what DFLASH emits for hybrid targets wrong, too. 0.5.14 mends it so. Nothing else of DDTREE needs "
        "this step: `--step` can leave it out for those who do not want upstream faults mended."
    ),
    variants=(
        Variant(
            "clears_in_verify",
            when=(Defines(HYBRID_BACKEND, _SCOPE), Lacks(_FOUR)),
            edits=(EditCondition(HYBRID_BACKEND, _SCOPE, _OLD, _NEW),),
        ),
        Variant("verify_is_left_out", when=(_FOUR,)),
        Variant("no_deferred_clear", when=(HasFile(HYBRID_BACKEND), Lacks(Defines(HYBRID_BACKEND, _SCOPE)))),
    ),
    cases=(
        Case("clears_in_verify", {HYBRID_BACKEND: _BEFORE}, {HYBRID_BACKEND: _BEFORE.replace(_OLD, _NEW)}),
        Case("verify_is_left_out", {HYBRID_BACKEND: _LATER}, {}),
        Case("no_deferred_clear", {HYBRID_BACKEND: "class MambaAttnBackendBase: ...\n"}, {}),
    ),
    refusals=(
        Refusal({HYBRID_BACKEND: _BEFORE.replace("is_extend()", "is_prefill()")}, StepOutcome.ANCHOR_MISSING),
        Refusal({}, StepOutcome.FILE_MISSING),
    ),
)
