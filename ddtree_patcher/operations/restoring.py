"""``revert --from-wheel``: the patch is taken out of an installation whose state folder is lost, or is another one's.

The wheel is the pristine installation, proved by RECORD; the patchset at hand, planned on the wheel, says what is ours:
a file that it would change counts as ours where its digest is the planned one (or the one that a state of this
installation remembers), a file that it would add counts as ours where its path is the planned one and its digest is the
planned one or the one in RECORD, in which nobody but ``apply`` gives it a row. Everything else is somebody's edit.

What no wheel says is not restored: times of modification are those of the revert, modes those of the files there now.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion

from .. import transaction
from ..digest import sha256
from ..errors import EnvironmentRefused, UsageError
from ..installation import Installation
from ..lock import locked
from ..model import Diagnostic, ExitCode, FileState, FileStatus, Report, Severity
from ..planner import draft
from ..pristine import foreign_files
from ..store import State
from ..transaction import Change
from ..tree import Tree
from .changes import drop_caches
from .drift import fetch, reinstall
from .proved_wheel import ProvedWheel, open_wheel
from .running import outlived
from .session import Session


@dataclass(frozen=True)
class _Finds:
    """What is to be done with the files that are not the wheel's: paths, each with the digest that it has now."""

    ours: dict[str, str]  # patched: the wheel's bytes go there
    added: dict[str, str]  # added by us: removed
    edited: dict[str, str]  # the patchset's files, with somebody's edit: only with --discard-edits
    others: dict[str, str]  # files of the release that no step of the patchset changes: likewise


def revert_from_wheel(session: Session, path: Path, *, discard_edits: bool) -> Report:
    """Put the wheel's bytes back. Refuses a wheel that is not this installation's, and to lose an edit unless told.

    With ``discard_edits`` every file of the package that differs from RECORD is put back, whoever changed it.
    """
    session.refuse_not_ours()
    with locked(session.installation.root, session.options.lock_timeout):
        notes = session.recover()
        state = session.state()
        wheel = _wheel_of(session.installation, path)
        finds = _look(session, wheel, state)
        if finds.edited and not discard_edits:
            said = tuple(_edit(session, name) for name in sorted(finds.edited))
            return session.report("revert", ExitCode.CONFLICT, files=_files(finds, wheel), diagnostics=(*notes, *said))
        restored = {**finds.ours, **({**finds.edited, **finds.others} if discard_edits else {})}
        changes = _restore(session, wheel, finds, restored, state)
    left = {} if discard_edits else finds.others
    told = [_done(session, wheel, restored, finds.added), *(_left(session, name) for name in sorted(left))]
    told += outlived(session, changes)
    files = _files(finds, wheel, restored)
    return session.report("revert", ExitCode.OK, "clean", files=files, diagnostics=(*notes, *told))


def _wheel_of(installation: Installation, path: Path) -> ProvedWheel:
    """The wheel, where RECORD has the digests that it has. Raises ``UsageError`` for another one."""
    remedy = f"Name the wheel of what is installed: {fetch(installation)}."
    if installation.record is None:
        raise EnvironmentRefused(
            f"{installation.root} has no RECORD, by which a wheel could be proved to be the one that was installed",
            remedy=reinstall(installation),
        )
    try:
        wheel = open_wheel(path, installation.version)
    except InvalidVersion as error:
        raise EnvironmentRefused(f"{installation.dist_info}: {error}", remedy=reinstall(installation)) from error
    except EnvironmentRefused as error:
        raise UsageError(error.summary, remedy=remedy, path=str(path)) from error
    if canonicalize_name(wheel.source.distribution) != canonicalize_name(installation.distribution):
        summary = f"{path} is of {wheel.source.distribution}, not of {installation.distribution}"
        raise UsageError(summary, remedy=remedy, path=str(path))
    _refuse_other_build(installation, wheel, remedy)
    return wheel


def _refuse_other_build(installation: Installation, wheel: ProvedWheel, remedy: str) -> None:
    """Raise where RECORD has another digest of a file of the package, or none, than the wheel has."""
    mine = f"{installation.package}/"
    rows = {name: row.sha256 for name, row in wheel.record.rows.items() if name.startswith(mine) and row.sha256}
    other = sorted(name for name, digest in rows.items() if installation.recorded_sha256(name) != digest)
    if not other:
        return
    if len(other) * 2 > len(rows):
        summary = f"{wheel.path} is another build of {installation.version}: {len(other)} files differ from RECORD"
        raise UsageError(summary, detail=", ".join(other[:5]), remedy=remedy, path=str(wheel.path))
    raise EnvironmentRefused(
        f"RECORD disagrees with {wheel.path.name} about {', '.join(other[:5])}: "
        "it was rewritten, or this is another build",
        remedy=reinstall(installation),
        path=other[0],
    )


def _look(session: Session, wheel: ProvedWheel, state: State | None) -> _Finds:
    installation = session.installation
    planned = {item.path: item for item in draft(session.loaded.patchset, Tree(wheel.read)).files}
    trusted = state if state and state.version == installation.version else None
    entries = {entry.path: entry for entry in trusted.files} if trusted else {}
    accepted = trusted.drift if trusted else {}
    added_paths = {path for step in session.loaded.patchset.steps for path in step.added_paths()}
    added_paths.update(entry.path for entry in entries.values() if entry.added)
    finds = _Finds({}, {}, {}, {})
    for path, digest in foreign_files(installation).items():
        wanted = {planned[path].desired_sha256} if path in planned else set()
        wanted.update([entries[path].patched_sha256] if path in entries else [])
        known = path in planned or path in entries
        if digest in (*wanted, "") and known and path not in accepted:
            finds.ours[path] = digest
        else:
            (finds.edited if known else finds.others)[path] = digest
    for path in sorted(added_paths - wheel.source.names):
        target = installation.folder / path
        if target.is_file():
            digest = sha256(target.read_bytes())
            vouched = {planned[path].desired_sha256} if path in planned else set()
            vouched.update([entries[path].patched_sha256] if path in entries else [])
            mine = digest in (*vouched, installation.recorded_sha256(path))
            (finds.added if mine else finds.edited)[path] = digest
    return finds


def _restore(
    session: Session, wheel: ProvedWheel, finds: _Finds, restored: dict[str, str], state: State | None
) -> list[Change]:
    installation, names = session.installation, wheel.source.names
    removed = {**finds.added, **{path: digest for path, digest in restored.items() if path not in names}}
    changes = [Change(path, None, digest) for path, digest in removed.items()]
    changes += [Change(path, wheel.read(path), digest) for path, digest in restored.items() if path in names]
    changes += drop_caches(session, sorted({*removed, *restored}))
    assert installation.record is not None
    data = installation.record.data
    rows = [*removed, *(entry.path for entry in state.files if entry.added)] if state else [*removed]
    after = installation.record.without_rows([path for path in rows if path not in names])
    if after != data:
        changes.append(Change(installation.record_path, after, sha256(data)))
    parents = {parent.as_posix() for path in removed for parent in PurePosixPath(path).parents}
    folders = sorted(parents - wheel.folders - {"."})

    session.options.say(f"putting back {len(changes)} files")
    transaction.commit(installation.folder, session.store, changes, None, tuple, empty=folders)
    return changes


def _edit(session: Session, path: str) -> Diagnostic:
    summary = f"{path}: neither the wheel's nor what this patchset would make of it: somebody edited it"
    remedy = "Keep that edit elsewhere, then add --discard-edits."
    detail = "Another version of the patchset may have made it, too: then nothing is lost."
    return Diagnostic(FileStatus.FOREIGN.value, Severity.ERROR, summary, detail, remedy, path=path)


def _left(session: Session, path: str) -> Diagnostic:
    summary = f"{path} is not what RECORD says, no step of the patchset changes it, and it was left as it is"
    remedy = "Add --discard-edits to put back every file that differs from RECORD."
    return Diagnostic(FileStatus.FOREIGN.value, Severity.WARNING, summary, remedy=remedy, path=path)


def _done(session: Session, wheel: ProvedWheel, restored: dict[str, str], added: dict[str, str]) -> Diagnostic:
    summary = (
        f"{len(restored)} files have the bytes of {wheel.path.name} again, by RECORD's digests; "
        f"{len(added)} files that the patchset had added are gone"
    )
    detail = "A wheel knows no times and no modes: times are those of this revert, modes are as they were."
    return Diagnostic("from_wheel", Severity.NOTE, summary, detail)


def _files(finds: _Finds, wheel: ProvedWheel, restored: dict[str, str] | None = None) -> tuple[FileState, ...]:
    """Every file that was found to be other than the wheel's; as it is now, or after what was ``restored``."""
    found = {**finds.ours, **finds.added, **finds.edited, **finds.others}
    states = []
    for path, digest in sorted(found.items()):
        pristine, added = wheel.recorded(path), path not in wheel.source.names
        now = digest
        if restored is not None and (path in restored or path in finds.added):
            now = pristine
        status = FileStatus.PRISTINE if now == pristine else FileStatus.FOREIGN
        if path in {**finds.ours, **finds.added} and restored is None:
            status = FileStatus.PATCHED
        if not now:
            status = FileStatus.MISSING
        states.append(FileState(path, status, added, pristine, pristine, now))
    return tuple(states)
