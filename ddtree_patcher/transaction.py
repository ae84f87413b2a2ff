"""The only writer: changes several files of an installation together, or none of them.

Phases, and what a failure in each leaves behind:

1. *keep*: the bytes that will be replaced are copied into the store. Nothing in the tree has changed.
2. *journal*: what is about to happen is written down, durably. Still nothing has changed.
3. *stage*: every new file is written and synced under a temporary name in its own folder.
4. *replace*: ``os.replace`` for each file, never a write in place (hard links to a package cache stay as they are).
5. *read back*: each file is read again and must have the planned digest.
6. *state*: what is applied is written down.
7. *check*: the caller's verification runs on the new tree.
8. *end*: the journal is removed. Only now is the change done.

A failure or a signal in 1-7 puts every byte, mode and time back before it is reported. A process that dies in 1-7
leaves a journal; :func:`recover`, which every writing command calls first, puts everything back from it.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from . import bytecode
from .digest import sha256
from .errors import Conflict, EnvironmentRefused, Interrupted, PatchError
from .model import CheckOutcome, CheckResult, Diagnostic, Severity
from .signals import Stopped, signals_as_exceptions, signals_ignored
from .store import Journal, JournalEntry, State, Store, inside, sync_folder

Check = Callable[[], Sequence[CheckResult]]


@dataclass(frozen=True, slots=True)
class Change:
    """What one file becomes. ``after`` None removes it; ``expected`` is the digest it must have now ("": no file)."""

    path: str
    after: bytes | None = field(repr=False)
    expected: str
    mtime_ns: int = 0  # 0: now
    mode: int = 0  # 0: that of the file there now


def commit(
    folder: Path,
    store: Store,
    changes: Sequence[Change],
    state: State | None,
    check: Check,
    *,
    keep: Sequence[bytes] = (),
) -> tuple[CheckResult, ...]:
    """Make all changes, or none. Returns the results of ``check``; any failed one has everything put back.

    ``keep`` are bytes that the state refers to and no change replaces.

    The caller holds the lock. Raises :class:`Interrupted` on SIGINT or SIGTERM, after putting everything back.
    """
    work = _Work(folder, store, changes)
    with signals_as_exceptions():
        try:
            work.begin(keep)
            work.stage()
            work.replace()
            work.read_back()
            store.write_state(state)
            results = tuple(check())
            if any(item.outcome is CheckOutcome.FAILED for item in results):
                work.put_back()
                return results
            with signals_ignored():  # from here on the change stands
                work.end()
            return results
        except BaseException as error:
            with signals_ignored():
                try:
                    work.put_back()
                except OSError as failure:
                    raise _stuck(failure, folder) from error
            if isinstance(error, Stopped):
                raise Interrupted(f"stopped by {error}; everything was put back", remedy="Run it again.") from None
            if isinstance(error, OSError):
                raise _refused(error, folder) from error
            raise


def recover(folder: Path, store: Store) -> Diagnostic | None:
    """Put back what a process that died left half done; None when there was nothing."""
    journal = store.journal()
    if journal is None:
        with suppress(OSError):  # what a run left that died before its journal, or after it
            store.clean()
        return None
    try:
        _restore(folder, store, journal)
    except OSError as error:
        raise _refused(error, folder) from error
    return Diagnostic(
        "interrupted",
        Severity.WARNING,
        f"an earlier run (process {journal.pid}) ended half way: its {len(journal.changes)} files were put back",
    )


class _Work:
    """One transaction's files, in the order of its phases."""

    def __init__(self, folder: Path, store: Store, changes: Sequence[Change]) -> None:
        self.folder = folder
        self.store = store
        self.changes = changes
        self.journal: Journal | None = None

    def begin(self, keep: Sequence[bytes]) -> None:
        self.store.open()
        for data in keep:
            self.store.put(data)
        entries, folders = [], []
        for change in self.changes:
            folders += self._missing_folders(change.path)
            entries.append(self._entry(change))
        journal = Journal(os.getpid(), tuple(entries), tuple(dict.fromkeys(folders)), self.store.raw_state())
        self.store.write_journal(journal)
        self.journal = journal

    def stage(self) -> None:
        assert self.journal is not None
        for made in self.journal.folders:
            (self.folder / made).mkdir(exist_ok=True)
        for change, entry in zip(self.changes, self.journal.changes, strict=True):
            target = self.folder / change.path
            if change.after is not None:
                _write(self.folder / entry.staged, change.after, target, change.mtime_ns, change.mode)

    def replace(self) -> None:
        assert self.journal is not None
        for change, entry in zip(self.changes, self.journal.changes, strict=True):
            target = self.folder / change.path
            if change.after is None:
                target.unlink(missing_ok=True)
            else:
                os.replace(self.folder / entry.staged, target)
        for parent in sorted({(self.folder / change.path).parent for change in self.changes}):
            if parent.is_dir():
                sync_folder(parent)

    def read_back(self) -> None:
        for change in self.changes:
            found = _digest(self.folder / change.path)
            wanted = "" if change.after is None else sha256(change.after)
            if found != wanted:
                raise PatchError(
                    f"{change.path} was written, and reads back differently",
                    remedy="Something else writes to this installation, or its disk is failing.",
                    path=change.path,
                )

    def end(self) -> None:
        self.store.write_journal(None)
        self.journal = None
        with suppress(OSError):
            self.store.clean()

    def put_back(self) -> None:
        if self.journal is None:
            with suppress(OSError):
                self.store.write_journal(None)
                self.store.clean()
        else:
            _restore(self.folder, self.store, self.journal)
            self.journal = None

    def _entry(self, change: Change) -> JournalEntry:
        target = self.folder / inside(change.path)
        if os.path.realpath(target) != str(target):
            raise EnvironmentRefused(
                f"{change.path} is, or lies behind, a symbolic link to {os.path.realpath(target)}",
                remedy="Give this environment its own copy of the package (uv: --link-mode copy).",
                path=change.path,
            )
        before = _read(target)
        digest = "" if before is None else self.store.put(before)
        if digest != change.expected:
            raise Conflict(
                f"{change.path} changed since it was planned",
                remedy="Something else writes to this installation. Run the command again when it is quiet.",
                path=change.path,
            )
        status = target.stat() if before is not None else None
        staged = f"{change.path.rpartition('/')[0]}/.{target.name}.ddtree-patch-{os.getpid()}".lstrip("/")
        return JournalEntry(
            path=change.path,
            before_sha256=digest,
            after_sha256="" if change.after is None else sha256(change.after),
            before_mode=stat.S_IMODE(status.st_mode) if status else 0,
            before_mtime_ns=status.st_mtime_ns if status else 0,
            staged=staged if change.after is not None else "",
        )

    def _missing_folders(self, path: str) -> list[str]:
        parents = [item.as_posix() for item in reversed(Path(inside(path)).parents) if item != Path(".")]
        return [item for item in parents if not (self.folder / item).is_dir()]


def _restore(folder: Path, store: Store, journal: Journal) -> None:
    """Everything as it was before the journal was written. Refuses to overwrite what somebody else wrote since."""
    current = {entry.path: _digest(folder / entry.path) for entry in journal.changes}
    foreign = [
        entry.path for entry in journal.changes if current[entry.path] not in (entry.before_sha256, entry.after_sha256)
    ]
    if foreign:
        raise Conflict(
            f"{', '.join(foreign)} changed after an interrupted run: putting it back would lose that change",
            remedy="Move the file away, or reinstall SGLang, and run the command again.",
            path=foreign[0],
        )
    for entry in journal.changes:
        if entry.staged and os.path.lexists(folder / entry.staged):  # a read-only tree refuses to remove nothing
            (folder / entry.staged).unlink()
        target = folder / entry.path
        if not entry.before_sha256:
            if current[entry.path]:
                target.unlink()
        elif current[entry.path] != entry.before_sha256:
            target.parent.mkdir(parents=True, exist_ok=True)
            staged = target.with_name(f".{target.name}.ddtree-patch-back")
            _write(staged, store.get(entry.before_sha256), target, entry.before_mtime_ns, entry.before_mode)
            os.replace(staged, target)
        elif target.stat().st_mtime_ns != entry.before_mtime_ns:  # untouched, in a tree that may be read-only
            os.utime(target, ns=(entry.before_mtime_ns, entry.before_mtime_ns))
    for made in reversed(journal.folders):
        with suppress(OSError):
            (folder / made).rmdir()
    for parent in sorted({(folder / entry.path).parent for entry in journal.changes}):
        if parent.is_dir():
            sync_folder(parent)
    store.write_raw_state(journal.state)
    store.write_journal(None)
    store.clean()


def _write(path: Path, data: bytes, like: Path, mtime_ns: int, mode: int = 0) -> None:
    """A new file with the mode and owner of ``like`` (or ``mode``), synced, in place of an old one of that name."""
    path.unlink(missing_ok=True)
    status = like.stat() if like.exists() else None
    mode = mode or (stat.S_IMODE(status.st_mode) if status else 0o644)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:
        if status and os.geteuid() == 0:
            os.fchown(file.fileno(), status.st_uid, status.st_gid)
        os.fchmod(file.fileno(), mode)
        file.write(data)
        file.flush()
        before = status.st_mtime_ns if status else 0
        when = mtime_ns or bytecode.later_than(time.time_ns(), before)
        os.utime(file.fileno(), ns=(when, when))
        os.fsync(file.fileno())


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _digest(path: Path) -> str:
    data = _read(path)
    return "" if data is None else sha256(data)


def _refused(error: OSError, folder: Path) -> EnvironmentRefused:
    return EnvironmentRefused(
        f"{folder} cannot be written: {error.strerror or error}",
        detail=str(error.filename or ""),
        remedy="Run as its owner, on a writable file system with free space. Everything was put back.",
    )


def _stuck(error: OSError, folder: Path) -> EnvironmentRefused:
    return EnvironmentRefused(
        f"{folder} could not be put back: {error.strerror or error}",
        detail=str(error.filename or ""),
        remedy="Make it writable again and run `ddtree-patch revert`: the journal is kept, and it recovers first.",
    )


def remove_empty(folder: Path, made: Sequence[str]) -> None:
    """Remove folders that an application made, innermost first, where nothing is left in them."""
    for name in sorted(made, key=len, reverse=True):
        for path in (folder / name / "__pycache__", folder / name):
            with suppress(OSError):
                path.rmdir()
