"""The recurrent states that are kept after a verify forward are those of the accepted nodes."""

from __future__ import annotations

from ddtree_patcher.codemods import Anchor, Fragments, InsertBefore
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Contract, Refusal, Step, Variant
from ddtree_patcher.shape import Defines, HasFile, Holds, Lacks, Shape

from ..files import DDTREE_WORKER, DFLASH_WORKER, DFLASH_WORKER_V2, fragments, indented

_METHOD = "_update_target_mamba_state_after_verify"
_CALL = "attn_backend.update_mamba_state_after_mtp_verify(...)"
_OLD, _NEW = fragments("dflash_worker.py"), fragments("dflash_worker_v2.py")
_NODES = Contract(DDTREE_WORKER, "DDTreeRuntime.nodes_of", ("self", "last", "tracked"))


def _variant(name: str, path: str, cls: str, code: str, *when: Shape, guard: str = "") -> Variant:
    scope = f"{cls}.{_METHOD}"
    return Variant(
        name,
        when=when,
        edits=(InsertBefore(path, Anchor(_CALL, scope=scope, within=guard), code),),
        contract=(_NODES, Contract(path, scope, ("self", "batch", "seq_lens_pre_verify", "commit_lens"))),
    )


def _worker(cls: str, steps: str) -> str:
    return f"""\
class {cls}:
    def {_METHOD}(self, *, batch, seq_lens_pre_verify, commit_lens):
        {steps} = commit_lens.to(torch.int64) - 1
        mamba_steps_to_track = None
        attn_backend.update_mamba_state_after_mtp_verify({steps}={steps})
"""


def _after(before: str, code: str) -> str:
    call = "        attn_backend."
    return before.replace(call, indented(code, " " * 8) + call)


def _case(name: str, path: str, before: str, source: Fragments, code: str) -> Case:
    return Case(name, {path: before, **_OTHERS}, {path: _after(before, source.body(code))})


_ACCEPTED = Anchor("accepted_steps = ...", scope=f"DFlashWorker.{_METHOD}")
_LAST = Anchor("last_correct_step_indices = commit_lens.to(torch.int64) - 1", scope=f"DFlashWorker.{_METHOD}")
_LAST_V2 = Anchor("last_correct_step_indices = commit_lens.to(torch.int64) - 1", scope=f"DFlashWorkerV2.{_METHOD}")
_GUARD = "if hasattr(attn_backend, ...): ..."  # not every backend keeps states
_GUARDED = Anchor(_GUARD, scope=f"DFlashWorkerV2.{_METHOD}")
_OTHERS = {DDTREE_WORKER: "class DDTreeRuntime:\n    def nodes_of(self, last, tracked): ...\n"}
_V2_BEFORE = _worker("DFlashWorkerV2", "last_correct_step_indices")
_GUARDED_MARGIN = " " * 12
_GUARDED_BEFORE = _V2_BEFORE.replace(
    "        attn_backend.", '        if hasattr(attn_backend, "x"):\n            attn_backend.'
)

STEP = Step(
    id="node-commit",
    summary="a hybrid target keeps the recurrent states of the accepted nodes",
    why=(
        "Verification leaves a state for every node, by its index, and DFLASH keeps the one at the accepted length: in "
        "a chain they are the same. DFLASH commits after every verify forward, also when the root alone was accepted; "
        "so does this. States for the radix cache are chosen likewise."
    ),
    requires=("worker-branch",),
    variants=(
        _variant(
            "accepted_steps",
            DFLASH_WORKER,
            "DFlashWorker",
            _OLD.body("accepted_steps"),
            Holds(DFLASH_WORKER, _ACCEPTED),
        ),
        _variant(
            "last_steps",
            DFLASH_WORKER,
            "DFlashWorker",
            _OLD.body("last_steps"),
            Holds(DFLASH_WORKER, _LAST),
            Lacks(Holds(DFLASH_WORKER, _ACCEPTED)),
        ),
        _variant(
            "last_steps_in_window",
            DFLASH_WORKER_V2,
            "DFlashWorkerV2",
            _NEW.body("last_steps"),
            Lacks(HasFile(DFLASH_WORKER)),
            Defines(DFLASH_WORKER_V2, "DFlashWorkerV2"),
            Holds(DFLASH_WORKER_V2, _LAST_V2),
            Lacks(Holds(DFLASH_WORKER_V2, _GUARDED)),
        ),
        _variant(
            "last_steps_in_window_if_kept",
            DFLASH_WORKER_V2,
            "DFlashWorkerV2",
            _NEW.body("last_steps"),
            Lacks(HasFile(DFLASH_WORKER)),
            Holds(DFLASH_WORKER_V2, _LAST_V2),
            Holds(DFLASH_WORKER_V2, _GUARDED),
            guard=_GUARD,
        ),
    ),
    cases=(
        _case("accepted_steps", DFLASH_WORKER, _worker("DFlashWorker", "accepted_steps"), _OLD, "accepted_steps"),
        _case("last_steps", DFLASH_WORKER, _worker("DFlashWorker", "last_correct_step_indices"), _OLD, "last_steps"),
        _case("last_steps_in_window", DFLASH_WORKER_V2, _V2_BEFORE, _NEW, "last_steps"),
        Case(
            "last_steps_in_window_if_kept",
            {DFLASH_WORKER_V2: _GUARDED_BEFORE, **_OTHERS},
            {
                DFLASH_WORKER_V2: _GUARDED_BEFORE.replace(
                    f"{_GUARDED_MARGIN}attn_backend.",
                    indented(_NEW.body("last_steps"), _GUARDED_MARGIN) + f"{_GUARDED_MARGIN}attn_backend.",
                )
            },
        ),
    ),
    refusals=(
        Refusal(
            {DFLASH_WORKER_V2: _V2_BEFORE.replace("attn_backend.", "backend."), **_OTHERS}, StepOutcome.ANCHOR_MISSING
        ),
        Refusal({DFLASH_WORKER_V2: _V2_BEFORE.replace("- 1", "- 2"), **_OTHERS}, StepOutcome.ANCHOR_MISSING),
        Refusal(
            {DFLASH_WORKER_V2: _V2_BEFORE.replace("seq_lens_pre_verify", "lens"), **_OTHERS},
            StepOutcome.PRECONDITION_FAILED,
        ),
        Refusal({DFLASH_WORKER_V2: _V2_BEFORE}, StepOutcome.PRECONDITION_FAILED),
    ),
)
