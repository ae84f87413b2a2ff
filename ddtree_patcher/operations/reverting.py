"""``revert``: every byte, mode and added file back to what it was before ``apply``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .. import transaction
from ..lock import locked
from ..model import Diagnostic, DriftCause, ExitCode, FileState, FileStatus, Report, Severity
from ..pristine import Finding, Pristine, explain, file_state
from ..store import State
from .changes import give_back, plan_record
from .drift import Drift, diagnose
from .inspecting import files_to_watch
from .running import outlived
from .session import Session


def revert(session: Session, *, discard_edits: bool) -> Report:
    """Put everything back. Refuses to overwrite a file that somebody edited, unless ``discard_edits``."""
    session.refuse_not_ours()
    with locked(session.installation.root, session.options.lock_timeout):
        notes = session.recover()
        state = session.state()
        if state is None:
            report = _nothing(session)
        else:  # whatever patchset it is that is applied
            report = replace(_revert(session, state, discard_edits), patchset=state.patchset)
    return replace(report, diagnostics=(*notes, *report.diagnostics))


def _nothing(session: Session) -> Report:
    """Nothing that the state knows of. A patch without its state can be taken out too, by the wheel."""
    look = Pristine(session.installation, session.store, None)
    drift = diagnose(session, None, [look.find(path) for path in files_to_watch(session.installation)])
    if drift and drift.cause is DriftCause.STATE_LOST:
        return session.report("revert", ExitCode.CONFLICT, diagnostics=(drift.diagnostic(Severity.ERROR),))
    note = Diagnostic(
        "clean", Severity.NOTE, f"nothing is applied to {session.installation.root}: there was nothing to revert"
    )
    said = (note, drift.diagnostic()) if drift else (note,)
    return session.report("revert", ExitCode.OK, "clean", diagnostics=said)


def _revert(session: Session, state: State, discard_edits: bool) -> Report:
    look = Pristine(session.installation, session.store, state)
    findings = [look.find(entry.path) for entry in state.files]
    drift = diagnose(session, state, findings)
    files = tuple(file_state(item, state) for item in findings)
    foreign = [item for item in findings if item.status is FileStatus.FOREIGN]
    unproved = [item for item in foreign if (entry := state.entry(item.path)) and not look.vouched(entry)]
    if unproved or (foreign and not discard_edits):
        return session.report("revert", ExitCode.CONFLICT, files=files, diagnostics=_refused(drift, foreign))
    restored = [item for item in findings if _is_ours(item)]
    changes = [*give_back(session, state, restored), *plan_record(session, state, {}).changes]

    folder = session.installation.folder
    session.options.say(f"putting back {len(restored)} files")
    transaction.commit(folder, session.store, changes, None, tuple, empty=state.folders)
    after = tuple(_put_back(item, finding) for item, finding in zip(files, findings, strict=True))
    notes = (*_mended(drift), *outlived(session, changes))
    return session.report("revert", ExitCode.OK, "clean", files=after, diagnostics=notes)


def _refused(drift: Drift | None, foreign: Sequence[Finding]) -> tuple[Diagnostic, ...]:
    """The cause, and each file that would be lost."""
    cause = [drift.diagnostic()] if drift else []
    return (*cause, *(explain(item, drift.remedy if drift else "", patched=True) for item in foreign))


def _mended(drift: Drift | None) -> tuple[Diagnostic, ...]:
    """What had become of the patch: a note, as there is nothing left of it."""
    return (replace(drift, remedy="").diagnostic(Severity.NOTE),) if drift else ()


def _is_ours(finding: Finding) -> bool:
    """Whether a file is to be put back: not one that a reinstallation has brought back already."""
    if finding.status is FileStatus.MISSING:
        return finding.pristine is not None
    return finding.status in (FileStatus.PATCHED, FileStatus.FOREIGN)


def _put_back(item: FileState, finding: Finding) -> FileState:
    """A file after a revert: an added one is gone, one that another release brought stays as that release has it."""
    if item.added or finding.pristine is None:
        known = finding.pristine_sha256
        return replace(item, status=FileStatus.MISSING, pristine_sha256=known, desired_sha256="", current_sha256="")
    known = finding.pristine_sha256
    return replace(item, status=FileStatus.PRISTINE, pristine_sha256=known, desired_sha256=known, current_sha256=known)
