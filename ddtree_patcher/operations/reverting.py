"""``revert``: every byte, mode and added file back to what it was before ``apply``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .. import transaction
from ..lock import locked
from ..model import CheckResult, Diagnostic, ExitCode, FileState, FileStatus, Report, Severity
from ..pristine import Finding, Pristine, explain, file_state
from ..store import State
from .changes import give_back, plan_record
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
    note = Diagnostic(
        "clean", Severity.NOTE, f"nothing is applied to {session.installation.root}: there was nothing to revert"
    )
    return session.report("revert", ExitCode.OK, "clean", diagnostics=(note,))


def _revert(session: Session, state: State, discard_edits: bool) -> Report:
    look = Pristine(session.installation, session.store, state)
    findings = [look.find(entry.path) for entry in state.files]
    files = tuple(file_state(item, state) for item in findings)
    foreign = [item for item in findings if item.status is FileStatus.FOREIGN]
    if foreign and not discard_edits:
        diagnostics = tuple(explain(item, patched=True) for item in foreign)
        return session.report("revert", ExitCode.CONFLICT, files=files, diagnostics=diagnostics)
    restored = [item for item in findings if _is_ours(item)]
    changes = [*give_back(session, state, restored), *plan_record(session, state, {}).changes]

    def end() -> Sequence[CheckResult]:
        transaction.remove_empty(session.installation.folder, state.folders)
        return ()

    transaction.commit(session.installation.folder, session.store, changes, None, end)
    after = tuple(_put_back(item, finding) for item, finding in zip(files, findings, strict=True))
    return session.report("revert", ExitCode.OK, "clean", files=after)


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
