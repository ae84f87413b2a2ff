"""``apply``: plan, check, write, read back, verify — or leave everything as it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .. import bytecode, transaction
from ..digest import sha256
from ..lock import locked
from ..model import (
    CheckOutcome,
    CheckResult,
    Diagnostic,
    ExitCode,
    FileState,
    FileStatus,
    Report,
    Severity,
    StepOutcome,
    StepResult,
    Tier,
)
from ..pristine import foreign_files
from ..store import Entry, State
from ..transaction import Change
from ..tree import Tree
from ..verification.static import Subject, static_checks
from .planning import Prepared, SavedPlan, Selection, prepare, refuse_stale
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
        recovered = transaction.recover(session.installation.folder, session.store)
        prepared = prepare(session, plan.selection if plan else selection)
        if plan:
            refuse_stale(session, plan, prepared)
        report = _apply(session, prepared, verification)
    notes = (recovered,) if recovered else ()
    return replace(report, diagnostics=(*notes, *report.diagnostics))


def _apply(session: Session, prepared: Prepared, verification: Verification) -> Report:
    if not prepared.applicable:
        return _report(session, prepared, ExitCode.CONFLICT, prepared.draft.steps, (), list(prepared.diagnostics))
    tier = verification.tier
    static = _static(session, prepared) if tier else ()
    diagnostics = list(prepared.diagnostics)
    if any(item.outcome is CheckOutcome.FAILED for item in static):
        code = judge(static, verification.required, diagnostics)
        return _report(session, prepared, code, prepared.draft.steps, static, diagnostics)
    state = _state(session, prepared)
    changes = _changes(session, prepared, state)
    paths = [entry.path for entry in state.files]

    def check() -> Sequence[CheckResult]:
        later = run_tiers(session, paths, tier) if tier and paths else ()
        return (*later, *_requirement((*static, *later), verification.required))

    if changes or session.state() != state:
        session.options.say(f"writing {len(changes)} files")
        later = transaction.commit(session.installation.folder, session.store, changes, state, check)
        written = True
    else:
        later, written = tuple(check()), False
    checks = (*static, *(item for item in later if item.id != _REQUIRED))
    code = judge(checks, verification.required, diagnostics)
    if code is not ExitCode.OK:
        if written:
            diagnostics.append(_rolled_back())
        return _report(session, prepared, code, prepared.draft.steps, checks, diagnostics)
    steps = tuple(_applied(step) for step in prepared.draft.steps)
    return _report(session, prepared, ExitCode.OK, steps, checks, diagnostics, applied=True)


_REQUIRED = "required-tier"


def _requirement(checks: Sequence[CheckResult], required: Tier | None) -> Sequence[CheckResult]:
    """A required tier that did not run fails the transaction like a failed check."""
    from ..verification.tiers import unmet_requirement

    reason = unmet_requirement(checks, required)
    return [CheckResult(required, _REQUIRED, CheckOutcome.FAILED, reason)] if required and reason else []


def _applied(step: StepResult) -> StepResult:
    """``applied`` is said here alone: after the transaction read every byte back."""
    return replace(step, outcome=StepOutcome.APPLIED) if step.outcome is StepOutcome.PENDING else step


def _rolled_back() -> Diagnostic:
    return Diagnostic("rolled_back", Severity.NOTE, "every byte was put back: the installation is as it was before")


def _static(session: Session, prepared: Prepared) -> tuple[CheckResult, ...]:
    """The static tier on the staged bytes, before anything is written."""
    session.options.say("checking the planned files")
    ours = {item.path for item in prepared.files}
    return static_checks(
        Subject(
            patchset=session.loaded.patchset,
            steps=prepared.draft.steps,
            tree=prepared.draft.tree,
            pristine=Tree(prepared.look.read),
            paths=tuple(item.path for item in prepared.draft.files),
            installation=session.installation,
            drift=_drift(session, prepared, ours),
        )
    )


def _drift(session: Session, prepared: Prepared, ours: set[str]) -> dict[str, str]:
    """With --allow-drift: every file that is not as RECORD says, accepted as it is."""
    if not prepared.look.allow_drift:
        return {}
    bases = {
        finding.path: finding.pristine_sha256
        for finding in prepared.look.findings.values()
        if finding.path in ours and finding.status in (FileStatus.FOREIGN, FileStatus.UNKNOWN_BASE)
    }
    return {**foreign_files(session.installation, {*ours, session.installation.record_path}), **bases}


def _state(session: Session, prepared: Prepared) -> State:
    """What state.json will say."""
    old, look = session.state(), prepared.look
    entries = []
    for item in prepared.draft.files:
        entry = old.entry(item.path) if old else None
        mtime = (
            entry.pristine_mtime_ns
            if entry and look.find(item.path).status is FileStatus.PATCHED
            else _mtime(session, item.path)
        )
        entries.append(
            Entry(item.path, _base(item.added, item.pristine), item.desired_sha256, 0 if item.added else mtime)
        )
    keep = {entry.path for entry in entries if look.find(entry.path).status is FileStatus.PATCHED}
    return State(
        patchset=session.identity,
        version=session.installation.version,
        steps=tuple((step.id, step.variant, step.files) for step in prepared.draft.steps),
        files=tuple(entries),
        record=_record(session, prepared, old),
        caches=_caches(session, entries, old, keep),
        folders=_folders(session, entries, old),
        drift=_drift(session, prepared, {entry.path for entry in entries}) or (old.drift if old else {}),
    )


def _base(added: bool, pristine: bytes) -> str:
    return "" if added else sha256(pristine)


def _mtime(session: Session, path: str) -> int:
    target = session.installation.folder / path
    return target.stat().st_mtime_ns if target.exists() else 0


def _record(session: Session, prepared: Prepared, old: State | None) -> Entry | None:
    """RECORD with rows for the files that are added, so that uninstalling removes them too."""
    added = {item.path: item.desired for item in prepared.draft.files if item.added}
    record = session.installation.record
    if not added or record is None:
        return None
    known = old.record if old and old.record and old.record.patched_sha256 == sha256(record.data) else None
    base = session.store.get(known.pristine_sha256) if known else record.without_rows([*added])
    path = session.installation.record_path
    mtime = known.pristine_mtime_ns if known else _mtime(session, path)
    return Entry(path, sha256(base), sha256(replace(record, data=base).with_rows(added)), mtime)


def _caches(session: Session, entries: Sequence[Entry], old: State | None, keep: set[str]) -> tuple[Entry, ...]:
    """The bytecode of pristine sources, to be put back with them."""
    folder = session.installation.folder
    found = [item for item in old.caches if _source_of(item.path) in keep] if old else []
    for entry in entries:
        if entry.path not in keep and not entry.added:
            for path in bytecode.caches_of(folder, entry.path):
                target = folder / path
                found.append(Entry(path, sha256(target.read_bytes()), "", target.stat().st_mtime_ns))
    return tuple(sorted(found, key=lambda item: item.path))


def _source_of(cache: str) -> str:
    folder, _, name = cache.rpartition("/__pycache__/")
    return f"{folder}/{name.partition('.')[0]}.py"


def _folders(session: Session, entries: Sequence[Entry], old: State | None) -> tuple[str, ...]:
    made = set(old.folders) if old else set()
    for entry in entries:
        parts = entry.path.split("/")[:-1]
        made.update(
            name
            for name in ("/".join(parts[: end + 1]) for end in range(len(parts)))
            if not (session.installation.folder / name).is_dir()
        )
    return tuple(sorted(made))


def _changes(session: Session, prepared: Prepared, state: State) -> list[Change]:
    """What the transaction has to do: only files that are not yet what they should be."""
    old = session.state()
    desired: dict[str, bytes | None] = {item.path: item.desired for item in prepared.draft.files}
    changes = []
    for item in prepared.files:
        if item.path in desired:
            after, mtime = desired[item.path], 0
        else:  # an earlier application changed it and this one does not: give it back
            after = prepared.look.find(item.path).pristine
            entry = old.entry(item.path) if old else None
            mtime = entry.pristine_mtime_ns if entry else 0
        if item.current_sha256 != (sha256(after) if after is not None else ""):
            changes.append(Change(item.path, after, item.current_sha256, mtime))
    changed = [change.path for change in changes]
    return [*changes, *_cache_changes(session, changed), *_record_change(session, prepared, state, old)]


def _cache_changes(session: Session, paths: Sequence[str]) -> list[Change]:
    folder = session.installation.folder
    caches = [cache for path in paths for cache in bytecode.caches_of(folder, path)]
    return [Change(cache, None, sha256((folder / cache).read_bytes())) for cache in caches]


def _record_change(session: Session, prepared: Prepared, state: State, old: State | None) -> list[Change]:
    record = session.installation.record
    if record is None:
        return []
    added = {item.path: item.desired for item in prepared.draft.files if item.added}
    if state.record is not None:
        base = record.without_rows([*added])
        known = old.record if old else None
        if known and known.patched_sha256 == sha256(record.data):
            base = session.store.get(known.pristine_sha256)
        after = replace(record, data=base).with_rows(added)
        mtime = 0
    elif old is not None and old.record is not None:
        after = record.without_rows([entry.path for entry in old.files if entry.added])
        mtime = old.record.pristine_mtime_ns
    else:
        return []
    if after == record.data:
        return []
    return [Change(session.installation.record_path, after, sha256(record.data), mtime)]


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
