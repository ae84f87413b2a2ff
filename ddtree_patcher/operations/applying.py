"""``apply``: plan, check, write, read back, verify — or leave everything as it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .. import bytecode, transaction
from ..errors import EnvironmentRefused
from ..lock import locked
from ..model import (
    CheckOutcome,
    CheckResult,
    Diagnostic,
    DriftCause,
    ExitCode,
    FileState,
    FileStatus,
    Report,
    Severity,
    StepOutcome,
    StepResult,
    Tier,
)
from ..pristine import Finding, foreign_files
from ..store import Entry, State
from ..transaction import Change
from ..tree import Tree
from ..verification.static import Subject, folders_of, nothing_else_changed, static_checks
from ..verification.tiers import unmet_requirement
from .changes import (
    RecordPlan,
    drop_caches,
    give_back,
    made_folders,
    origin_of,
    plan_record,
    pristine_caches,
    unchecked_caches,
)
from .planning import Prepared, SavedPlan, Selection, prepare, refuse_other, refuse_stale
from .running import still_running
from .session import Session
from .verifying import judge, run_tiers


@dataclass(frozen=True)
class Verification:
    """How far to verify (None: not at all), and the tier that must have run."""

    upto: Tier | None
    required: Tier | None = None

    @property
    def tier(self) -> Tier | None:
        """``upto``, or ``required`` where that goes further."""
        given = [tier for tier in (self.upto, self.required) if tier is not None]
        return max(given, key=lambda tier: tier.rank, default=None)


def apply(session: Session, selection: Selection, verification: Verification, plan: SavedPlan | None = None) -> Report:
    """Bring the installation to what the patchset plans. Everything is as before unless the report says ``ok``."""
    session.refuse_unsafe()
    with locked(session.installation.root, session.options.lock_timeout):
        notes = session.recover()
        if plan:
            refuse_other(session, plan)
        prepared = prepare(session, plan.selection if plan else selection)
        if plan:
            refuse_stale(plan, prepared)
        report = _apply(session, prepared, verification)
    return replace(report, diagnostics=(*notes, *report.diagnostics))


def _apply(session: Session, prepared: Prepared, verification: Verification) -> Report:
    session.tell(prepared.draft.steps)
    if not prepared.applicable:
        return _report(session, prepared, ExitCode.CONFLICT, prepared.draft.steps, (), list(prepared.diagnostics))
    tier = verification.tier
    drift = _drift(session, prepared)
    static = _static(session, prepared, drift) if tier else ()
    diagnostics = list(prepared.diagnostics)
    if any(item.outcome is CheckOutcome.FAILED for item in static):
        code = judge(static, verification.required, diagnostics)
        return _report(session, prepared, code, prepared.draft.steps, static, diagnostics)
    old = prepared.look.state
    record = plan_record(session, old, {item.path: item.desired for item in prepared.draft.files if item.added})
    state = _state(session, prepared, record, drift)
    changes = [*_changes(session, prepared, old), *record.changes]
    paths = [entry.path for entry in state.files] if state else []

    def check() -> Sequence[CheckResult]:
        later = run_tiers(session, paths, tier, static) if tier and paths else ()
        return (*later, *_requirement((*static, *later), verification.required))

    if changes:
        _refuse_unchecked(session, [change.path for change in changes])
    if changes or old != state:
        session.options.say(f"writing {len(changes)} files")
        folder, needed = session.installation.folder, state.folders if state else ()
        empty = [name for name in (old.folders if old else ()) if name not in needed]
        later = transaction.commit(folder, session.store, changes, state, check, keep=(record.base,), empty=empty)
        written = True
    else:
        later, written = tuple(check()), False
    checks = (*static, *(item for item in later if item.id != _REQUIRED))
    code = judge(checks, verification.required, diagnostics)
    if code is not ExitCode.OK:
        if written:
            diagnostics.append(_rolled_back())
        return _report(session, prepared, code, prepared.draft.steps, checks, diagnostics)
    diagnostics += still_running(session, changes)
    steps = tuple(_applied(step) for step in prepared.draft.steps)
    diagnostics = [_mended(item) for item in diagnostics]
    return _report(session, prepared, ExitCode.OK, steps, checks, diagnostics, applied=True)


_REQUIRED = "required-tier"


def _requirement(checks: Sequence[CheckResult], required: Tier | None) -> Sequence[CheckResult]:
    """A required tier that did not run fails the transaction like a failed check."""
    reason = unmet_requirement(checks, required)
    return [CheckResult(required, _REQUIRED, CheckOutcome.FAILED, reason)] if required and reason else []


def _applied(step: StepResult) -> StepResult:
    """``applied`` is said here alone: after the transaction read every byte back."""
    return replace(step, outcome=StepOutcome.APPLIED) if step.outcome is StepOutcome.PENDING else step


def _remembered(step: StepResult) -> StepResult:
    return replace(step, outcome=StepOutcome.ALREADY) if step.outcome is StepOutcome.PENDING else step


_CAUSES = {cause.value for cause in DriftCause}


def _mended(item: Diagnostic) -> Diagnostic:
    """The cause of a drift, once everything is as planned again: a note, with nothing left to do."""
    return replace(item, severity=Severity.NOTE, remedy="") if item.code in _CAUSES else item


def _rolled_back() -> Diagnostic:
    return Diagnostic("rolled_back", Severity.NOTE, "every byte was put back: the installation is as it was before")


def _static(session: Session, prepared: Prepared, drift: dict[str, str]) -> tuple[CheckResult, ...]:
    """The static tier on the staged bytes, before anything is written."""
    session.options.say("checking the planned files")
    subject = Subject(
        patchset=session.loaded.patchset,
        steps=prepared.draft.steps,
        tree=prepared.draft.tree,
        pristine=Tree(prepared.look.read),
        paths=tuple(item.path for item in prepared.draft.files),
        folders=folders_of(session.installation),
    )
    ours = [item.path for item in prepared.files]  # what an earlier application changed and this one gives back, too
    checks = (*static_checks(subject), nothing_else_changed(session.installation, ours, drift))
    session.tell(checks)
    return checks


def _refuse_unchecked(session: Session, paths: Sequence[str]) -> None:
    """Raise where the interpreter would go on running old bytecode: applied must mean that the new code runs."""
    if caches := unchecked_caches(session, paths):
        raise EnvironmentRefused(
            f"{caches[0]} is bytecode that Python never checks against its source (PEP 552)",
            detail=f"The cache prefix of {session.installation.interpreter.executable} holds {len(caches)} such files "
            "of sources that would change. They lie outside the installation, so nothing here touches them.",
            remedy="Remove them, or run with another PYTHONPYCACHEPREFIX.",
        )


def _drift(session: Session, prepared: Prepared) -> dict[str, str]:
    """With --allow-drift: every file that is not as RECORD says, accepted as it is."""
    if not prepared.look.allow_drift:
        return {}
    ours = {item.path for item in prepared.files}
    bases = {
        finding.path: finding.pristine_sha256
        for finding in prepared.look.findings.values()
        if finding.path in ours and finding.status in (FileStatus.FOREIGN, FileStatus.UNKNOWN_BASE)
    }
    return {**foreign_files(session.installation, {*ours, session.installation.record_path}), **bases}


def _state(session: Session, prepared: Prepared, record: RecordPlan, drift: dict[str, str]) -> State | None:
    """What state.json will say; None when upstream has everything, so that nothing of ours is there."""
    planned, look, old = prepared.draft.files, prepared.look, prepared.look.state
    if not planned:
        return None
    kept = {item.path: entry for item in planned if (entry := _earlier(old, look.find(item.path)))}
    fresh = [item.path for item in planned if item.path not in kept and not item.added]
    earlier = [cache for cache in old.caches if bytecode.source_of(cache.path) in kept] if old else []
    entries = []
    for item in planned:
        mtime, mode = (0, 0) if item.added else origin_of(session, item.path, kept.get(item.path))
        entries.append(Entry(item.path, item.pristine_sha256, item.desired_sha256, mtime, mode))
    return State(
        patchset=session.identity,
        version=session.installation.version,
        steps=tuple(_remembered(step) for step in prepared.draft.steps),
        files=tuple(entries),
        record=record.entry,
        caches=tuple(sorted([*earlier, *pristine_caches(session, fresh)], key=lambda item: item.path)),
        folders=made_folders(session, [item.path for item in planned], old),
        drift=drift or (old.drift if old else {}),
        whole=len(prepared.selected) == len(session.loaded.patchset.steps),
        root=str(session.installation.root),
    )


def _earlier(old: State | None, finding: Finding) -> Entry | None:
    """What is remembered of a file that is patched already."""
    return old.entry(finding.path) if old and finding.status is FileStatus.PATCHED else None


def _changes(session: Session, prepared: Prepared, old: State | None) -> list[Change]:
    """Only files that are not yet what they should be; what is no longer planned is given back."""
    planned = {item.path: item for item in prepared.draft.files}
    writes = [
        Change(state.path, planned[state.path].desired, state.current_sha256)
        for state in prepared.files
        if state.path in planned and state.current_sha256 != state.desired_sha256
    ]
    dropped = [prepared.look.find(item.path) for item in prepared.files if item.path not in planned]
    ours = [item for item in dropped if item.status is FileStatus.PATCHED]
    returned = give_back(session, old, ours) if old else []
    return [*writes, *drop_caches(session, [change.path for change in writes]), *returned]


def _report(
    session: Session,
    prepared: Prepared,
    code: ExitCode,
    steps: tuple[StepResult, ...],
    checks: tuple[CheckResult, ...],
    diagnostics: list[Diagnostic],
    *,
    applied: bool = False,
) -> Report:
    files = prepared.files
    if applied:
        files = tuple(_as_written(item) for item in files)
    return session.report("apply", code, steps=steps, files=files, checks=checks, diagnostics=tuple(diagnostics))


def _as_written(item: FileState) -> FileState:
    status = FileStatus.PRISTINE if item.desired_sha256 == item.pristine_sha256 else FileStatus.PATCHED
    return replace(item, status=status, current_sha256=item.desired_sha256)
