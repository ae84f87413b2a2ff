"""The changes that a transaction makes for ``apply`` and ``revert``, and what the state remembers of them."""

from __future__ import annotations

import stat
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import bytecode
from ..digest import sha256
from ..pristine import Finding
from ..store import Entry, State
from ..transaction import Change
from .drift import rewritten_rows
from .session import Session


@dataclass(frozen=True, slots=True)
class RecordPlan:
    """What becomes of RECORD. ``entry`` is None when none of its rows are ours; ``base`` is RECORD without ours."""

    entry: Entry | None
    changes: tuple[Change, ...]
    base: bytes


def give_back(session: Session, state: State, findings: Sequence[Finding]) -> list[Change]:
    """Pristine bytes, times and bytecode for files that an application changed; added ones are removed."""
    folder = session.installation.folder
    changes: list[Change] = []
    for finding in findings:
        entry = state.entry(finding.path)
        assert entry is not None
        after = None if entry.added else session.store.get(entry.pristine_sha256)
        changes.append(_restoration(entry, after, finding.current_sha256))
    paths = [finding.path for finding in findings]
    kept = {item.path: item for item in state.caches if bytecode.source_of(item.path) in paths}
    present = {cache for path in paths for cache in bytecode.caches_of(folder, path)}
    for cache in sorted({*kept, *present}):
        item = kept.get(cache)
        expected = sha256((folder / cache).read_bytes()) if cache in present else ""
        restored = session.store.get(item.pristine_sha256) if item else None
        if restored is None or item is None or item.pristine_sha256 != expected:
            changes.append(_restoration(item, restored, expected) if item else Change(cache, None, expected))
    return changes


def _restoration(entry: Entry, after: bytes | None, expected: str) -> Change:
    return Change(entry.path, after, expected, entry.pristine_mtime_ns, entry.pristine_mode)


def drop_caches(session: Session, paths: Sequence[str]) -> list[Change]:
    """The bytecode of sources that change is taken away."""
    folder = session.installation.folder
    caches = [cache for path in paths for cache in bytecode.caches_of(folder, path)]
    return [Change(cache, None, sha256((folder / cache).read_bytes())) for cache in caches]


def unchecked_caches(session: Session, paths: Sequence[str]) -> list[Path]:
    """Bytecode of these sources outside the installation that the interpreter would run whatever the sources say."""
    target = session.installation
    prefix = target.interpreter.pycache_prefix
    return [cache for folder in target.import_folders for cache in bytecode.unchecked_elsewhere(prefix, folder, paths)]


def pristine_caches(session: Session, paths: Sequence[str]) -> list[Entry]:
    """The bytecode of pristine sources, to be remembered."""
    folder = session.installation.folder
    caches = [folder / cache for path in paths for cache in bytecode.caches_of(folder, path)]
    return [
        Entry(path.relative_to(folder).as_posix(), sha256(path.read_bytes()), "", *mtime_and_mode(path))
        for path in caches
    ]


def plan_record(session: Session, old: State | None, added: Mapping[str, bytes]) -> RecordPlan:
    """RECORD with rows for the added files, so that uninstalling removes them too, and without earlier ones."""
    record, path = session.installation.record, session.installation.record_path
    if record is None:
        return RecordPlan(None, (), b"")
    known = old.record if old and old.record and old.record.patched_sha256 == sha256(record.data) else None
    ours = {*added, *(entry.path for entry in old.files if entry.added)} if old else {*added}
    base = session.store.get(known.pristine_sha256) if known else record.without_rows(sorted(ours))
    if old and not known:
        base = record.with_digests_of(_installed(session, old), base)
    mtime, mode = origin_of(session, path, known)
    after = record.with_rows(added, base) if added else base
    entry = Entry(path, sha256(base), sha256(after), mtime, mode) if added else None
    change = Change(path, after, sha256(record.data), None if added else mtime)
    return RecordPlan(entry, () if after == record.data else (change,), base)


def _installed(session: Session, state: State) -> dict[str, bytes]:
    """The pristine bytes of files of which RECORD was made to say something else since they were patched."""
    rewritten = rewritten_rows(session.installation, state)
    entries = [entry for entry in state.files if entry.path in rewritten and not entry.added]
    return {entry.path: session.store.get(entry.pristine_sha256) for entry in entries}


def made_folders(session: Session, paths: Collection[str], old: State | None) -> tuple[str, ...]:
    """Of the folders that hold files: those that have to be made, and those that were made before."""
    parents = {"/".join(path.split("/")[:end]) for path in paths for end in range(1, path.count("/") + 1)}
    before = old.folders if old else ()
    return tuple(
        sorted(name for name in parents if name in before or not (session.installation.folder / name).is_dir())
    )


def origin_of(session: Session, path: str, known: Entry | None) -> tuple[int, int]:
    """The time and mode of a pristine file: as they are remembered, else as they are on disk."""
    if known is not None:
        return known.pristine_mtime_ns, known.pristine_mode
    return mtime_and_mode(session.installation.folder / path)


def mtime_and_mode(path: Path) -> tuple[int, int]:
    """When a file was changed, in nanoseconds, and its permission bits; zeros where there is no file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return 0, 0
    return status.st_mtime_ns, stat.S_IMODE(status.st_mode)
