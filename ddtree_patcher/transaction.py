"""The only writer: changes several files of an installation together, or none of them.

Phases, and what a failure in each leaves behind:

1. *keep*: the bytes that will be replaced are copied into the store. Nothing in the tree has changed.
2. *journal*: what is about to happen is written down, durably. Still nothing has changed.
3. *stage*: every new file is written and synced under a temporary name in its own folder.
4. *replace*: a rename for each file, never a write in place (hard links to a package cache stay as they are).
   Folders that are no longer needed go. All names are durable before the next phase.
5. *read back*: each file is read again and must have the planned digest.
6. *state*: what is applied is written down.
7. *check*: the caller's verification runs on the new tree.
8. *end*: the journal is removed. Only now is the change done, and what is no longer referred to is dropped.

Whatever a path is, it is looked at again right before it is written: a file that somebody changed meanwhile is left to
them, and a folder that became a link is not followed.

A failure or a signal in 1-7 puts every byte, mode and time back before it is reported. A process that dies in 1-7, or
the power that goes, leaves a journal; :func:`recover`, which every writing command calls first, puts everything back
from it, and may itself be stopped anywhere.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import attributes, bytecode, disk
from .digest import sha256
from .errors import Conflict, EnvironmentRefused, Interrupted, PatchError
from .links import OWN_COPY
from .model import CheckOutcome, CheckResult, Diagnostic, Severity
from .signals import Stopped, signals_held
from .store import Journal, JournalEntry, State, Store, inside

Check = Callable[[], Sequence[CheckResult]]


@dataclass(frozen=True, slots=True)
class Change:
    """What one file becomes. ``after`` None removes it; ``expected`` is the digest it must have now ("": no file)."""

    path: str
    after: bytes | None = field(repr=False)
    expected: str
    mtime_ns: int | None = None  # None: now
    mode: int = 0  # 0: that of the file there now


def commit(
    folder: Path,
    store: Store,
    changes: Sequence[Change],
    state: State | None,
    check: Check,
    *,
    keep: Sequence[bytes] = (),
    empty: Sequence[str] = (),
) -> tuple[CheckResult, ...]:
    """Make all changes, or none. Returns the results of ``check``; any failed one has everything put back.

    ``keep`` are bytes that the state refers to and no change replaces; ``empty`` are folders to be removed where the
    changes leave nothing in them.

    The caller holds the lock. Raises :class:`Interrupted` on SIGINT or SIGTERM, after putting everything back.
    """
    work = _Work(folder, store, changes)
    with signals_held() as signals:
        try:
            signals.release()
            work.begin(keep)
            work.stage()
            work.replace(empty)
            work.read_back()
            store.write_state(state)
            results = tuple(check())
            signals.held = True
            if any(item.outcome is CheckOutcome.FAILED for item in results):
                work.put_back()
            else:
                work.end()
            return results
        except BaseException as error:
            signals.held = True
            try:
                work.put_back()
            except (OSError, EnvironmentRefused) as failure:
                raise _stuck(failure, folder) from error
            if isinstance(error, Stopped):
                raise Interrupted(f"stopped by {error}; everything was put back", remedy="Run it again.") from None
            if isinstance(error, OSError):
                raise _refused(error, folder) from error
            raise


def recover(folder: Path, store: Store) -> Diagnostic | None:
    """Put back what a process that died left half done; None when there was nothing.

    Raises :class:`Interrupted` afterwards, where a signal came meanwhile.
    """
    with signals_held() as signals:
        try:
            journal = store.journal()
            if journal is not None:
                _restore(folder, store, journal)
        except OSError as error:
            raise _stuck(error, folder) from error
        if journal is None:
            store.clean()  # what a run left that died before its journal, or after it
    if signals.kept:
        raise Interrupted(f"stopped by {signals.kept}; nothing was changed", remedy="Run it again.")
    if journal is None:
        return None
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
            disk.make_folder(_really(self.folder, made))
        for change, entry in zip(self.changes, self.journal.changes, strict=True):
            target = _really(self.folder, change.path)
            if change.after is not None:
                _write(self.folder / entry.staged, change.after, target, change.mtime_ns, change.mode)

    def replace(self, empty: Sequence[str] = ()) -> None:
        assert self.journal is not None
        for change, entry in zip(self.changes, self.journal.changes, strict=True):
            target = _really(self.folder, change.path)
            if _digest(target) != entry.before_sha256 and not bytecode.is_cache(change.path):
                self._leave(entry)
                raise _changed(change.path)
            if change.after is None:
                disk.unlink(target)
            else:
                disk.replace(self.folder / entry.staged, target)
        _sync(self.folder, self.journal)
        _remove_empty(self.folder, empty)

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
        self.store.end_journal()
        self.journal = None

    def _leave(self, entry: JournalEntry) -> None:
        """Take a file out of what is put back: somebody changed it before it was replaced, and it is theirs."""
        assert self.journal is not None
        disk.unlink(self.folder / entry.staged)
        self.journal = replace(self.journal, changes=tuple(item for item in self.journal.changes if item != entry))

    def put_back(self) -> None:
        if self.journal is None:  # nothing in the tree has changed
            with suppress(OSError):
                self.store.end_journal()
        else:
            _restore(self.folder, self.store, self.journal)
            self.journal = None

    def _entry(self, change: Change) -> JournalEntry:
        target = _really(self.folder, change.path)
        before = disk.read(target)
        digest = "" if before is None else self.store.put(before)
        if digest != change.expected:
            raise _changed(change.path)
        status = disk.status(target) if before is not None else None
        staged = f"{change.path.rpartition('/')[0]}/.{target.name}.ddtree-patch-{os.getpid()}".lstrip("/")
        return JournalEntry(
            path=change.path,
            before_sha256=digest,
            after_sha256="" if change.after is None else sha256(change.after),
            before_mode=stat.S_IMODE(status.st_mode) if status else 0,
            before_mtime_ns=status.st_mtime_ns if status else 0,
            staged=staged,
        )

    def _missing_folders(self, path: str) -> list[str]:
        parents = [item.as_posix() for item in reversed(Path(inside(path)).parents) if item != Path(".")]
        return [item for item in parents if not disk.is_folder(self.folder / item)]


def _restore(folder: Path, store: Store, journal: Journal) -> None:
    """Everything as it was before the journal was written. Refuses to overwrite what somebody else wrote since."""
    current = {entry.path: _digest(_really(folder, entry.path)) for entry in journal.changes}
    foreign = [
        entry.path
        for entry in journal.changes
        if current[entry.path] not in (entry.before_sha256, entry.after_sha256) and not bytecode.is_cache(entry.path)
    ]
    if foreign:
        raise Conflict(
            f"{', '.join(foreign)} changed after an interrupted run: putting it back would lose that change",
            remedy="Move the file away, or reinstall SGLang, and run the command again.",
            path=foreign[0],
        )
    for entry in journal.changes:
        target, staged = _really(folder, entry.path), folder / entry.staged
        disk.unlink(staged)
        if not entry.before_sha256:  # with what others compiled of an added file meanwhile
            for path in (entry.path, *bytecode.caches_of(folder, entry.path)):
                disk.unlink(folder / path)
        elif current[entry.path] != entry.before_sha256:
            disk.make_folder(target.parent)
            _write(staged, store.get(entry.before_sha256), target, entry.before_mtime_ns, entry.before_mode)
            disk.replace(staged, target)
        else:
            _restore_metadata(target, entry)
    _sync(folder, journal)
    _remove_empty(folder, journal.folders)
    store.write_raw_state(journal.state)
    store.end_journal()


def _restore_metadata(target: Path, entry: JournalEntry) -> None:
    """The time and mode of a file whose bytes are as before. One that is untouched may lie in a read-only tree."""
    status = target.stat()
    if (status.st_mtime_ns, stat.S_IMODE(status.st_mode)) != (entry.before_mtime_ns, entry.before_mode):
        disk.set_metadata(target, entry.before_mode, entry.before_mtime_ns)


def _remove_empty(folder: Path, names: Sequence[str]) -> None:
    """Remove folders in which nothing is left, innermost first, and what Python made in them."""
    for name in sorted(names, key=len, reverse=True):
        disk.remove_folder(folder / name / "__pycache__")
        disk.remove_folder(folder / name)


def _sync(folder: Path, journal: Journal) -> None:
    """Make the names of all changed files durable."""
    for parent in sorted({(folder / entry.path).parent for entry in journal.changes}):
        if disk.is_folder(parent):
            disk.sync_folder(parent)


def _really(folder: Path, path: str) -> Path:
    """Where a path of the tree is now; refuses one that is, or lies behind, a symbolic link."""
    target = folder / inside(path)
    if os.path.realpath(target) != str(target):
        raise EnvironmentRefused(
            f"{path} is, or lies behind, a symbolic link to {os.path.realpath(target)}",
            remedy=f"{OWN_COPY}.",
            path=path,
        )
    return target


def _changed(path: str) -> Conflict:
    return Conflict(
        f"{path} changed since it was planned",
        remedy="Something else writes to this installation. Run the command again when it is quiet.",
        path=path,
    )


def _write(path: Path, data: bytes, like: Path, mtime_ns: int | None, mode: int = 0) -> None:
    """A new file with all that ``like`` has (or ``mode``), later than it unless ``mtime_ns`` says when."""
    status = disk.status(like)
    before = status.st_mtime_ns if status else 0
    given = attributes.of_file(like, mode) if status else attributes.beside(path.parent, mode)
    # 0 is a time like any other (ostree #1469)
    when = bytecode.later_than(time.time_ns(), before) if mtime_ns is None else mtime_ns
    disk.make_file(path, data, given, mtime_ns=when)


def _digest(path: Path) -> str:
    data = disk.read(path)
    return "" if data is None else sha256(data)


def _refused(error: OSError, folder: Path) -> EnvironmentRefused:
    return EnvironmentRefused(
        f"{folder} cannot be written: {error.strerror or error}",
        detail=str(error.filename or ""),
        remedy="Run as its owner, on a writable file system with free space. Everything was put back.",
    )


def _stuck(error: OSError | EnvironmentRefused, folder: Path) -> EnvironmentRefused:
    why, where = (error.strerror or str(error), error.filename) if isinstance(error, OSError) else (error.summary, "")
    return EnvironmentRefused(
        f"{folder} could not be put back: {why}",
        detail=str(where or ""),
        remedy="Mend that and run `ddtree-patch revert`: the journal is kept, and it recovers first.",
    )
