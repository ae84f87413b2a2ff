"""The state folder: pristine bytes by digest, what is applied, and the journal of a transaction under way.

Layout, in ``<folder that holds the package>/.ddtree-patch/`` or ``--state-dir``::

    state.json       what is applied (absent: nothing)
    journal.json     a transaction that has not ended (absent: none)
    objects/<sha256> bytes that a revert or a recovery needs

The content is data: digests are checked before use, and a path that leaves the tree is refused.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from .digest import sha256
from .errors import EnvironmentRefused, PatchError, UsageError
from .model import PatchsetIdentity, StepOutcome, StepResult

NAME = ".ddtree-patch"
STATE_SCHEMA = "ddtree-patch.state/1"
JOURNAL_SCHEMA = "ddtree-patch.journal/1"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file as the applied patchset left it. An empty digest means: no file."""

    path: str
    pristine_sha256: str
    patched_sha256: str
    pristine_mtime_ns: int = 0  # 0 where there was no file
    pristine_mode: int = 0  # likewise

    @property
    def added(self) -> bool:
        return not self.pristine_sha256


@dataclass(frozen=True, slots=True)
class State:
    """What is applied: by which patchset, which steps, in which files."""

    patchset: PatchsetIdentity
    version: str  # of the installation when it was applied
    steps: tuple[StepResult, ...]  # already, upstreamed or not_needed
    files: tuple[Entry, ...]
    record: Entry | None = None  # RECORD, where rows were appended
    caches: tuple[Entry, ...] = ()  # bytecode that was set aside, to be put back
    folders: tuple[str, ...] = ()  # folders that were made
    drift: dict[str, str] = field(default_factory=dict)  # path -> digest of foreign files that were accepted
    whole: bool = True  # every step was selected

    def entry(self, path: str) -> Entry | None:
        return next((item for item in self.files if item.path == path), None)


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One change under way; empty digests mean: no file."""

    path: str
    before_sha256: str
    after_sha256: str
    before_mode: int = 0
    before_mtime_ns: int = 0
    staged: str = ""  # the temporary file beside it


@dataclass(frozen=True, slots=True)
class Journal:
    """A transaction that has begun. ``state`` is state.json as it was before (None: there was none)."""

    pid: int
    changes: tuple[JournalEntry, ...]
    folders: tuple[str, ...]
    state: dict[str, Any] | None


class Store:
    """One state folder. Reading never creates anything."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def beside(cls, folder: Path, state_dir: str = "") -> Store:
        """The store of the package in ``folder``; below a named folder each installation has one of its own."""
        if not state_dir:
            return cls(folder / NAME)
        return cls(Path(state_dir).absolute() / sha256(os.fsencode(folder))[:16])

    def state(self) -> State | None:
        data = self._json("state.json", STATE_SCHEMA)
        return None if data is None else self._checked("state.json", lambda: _state_from(data))

    def raw_state(self) -> dict[str, Any] | None:
        return self._json("state.json", STATE_SCHEMA)

    def journal(self) -> Journal | None:
        data = self._json("journal.json", JOURNAL_SCHEMA)
        return None if data is None else self._checked("journal.json", lambda: _journal_from(data))

    def get(self, digest: str) -> bytes:
        """Bytes by digest; refuses what is missing or damaged."""
        try:
            data = (self.folder / "objects" / digest).read_bytes()
        except OSError as error:
            raise PatchError(
                f"{self.folder} has lost the bytes {digest[:12]}…: {error.strerror}", remedy=_LOST
            ) from error
        if sha256(data) != digest:
            raise PatchError(f"{self.folder}/objects/{digest[:12]}… is damaged", remedy=_LOST)
        return data

    def put(self, data: bytes) -> str:
        """Keep bytes, durably; returns their digest."""
        digest = sha256(data)
        if not (self.folder / "objects" / digest).exists():
            self._write(f"objects/{digest}", data)
        return digest

    def write_state(self, state: State | None) -> None:
        self.write_raw_state(None if state is None else {"schema": STATE_SCHEMA, **asdict(state)})

    def write_raw_state(self, value: dict[str, Any] | None) -> None:
        self._write_json("state.json", value)

    def write_journal(self, journal: Journal | None) -> None:
        self._write_json("journal.json", None if journal is None else {"schema": JOURNAL_SCHEMA, **asdict(journal)})

    def open(self) -> None:
        """Make the folder, for its owner alone to write; refuses where that is not possible."""
        try:
            (self.folder / "objects").mkdir(mode=0o755, parents=True, exist_ok=True)
            self._write("probe", b"")
            (self.folder / "probe").unlink()
        except OSError as error:
            raise EnvironmentRefused(
                f"the state folder {self.folder} is not writable: {error.strerror}",
                remedy="Run as its owner, or choose another folder with --state-dir or DDTREE_PATCH_STATE_DIR.",
            ) from error

    def clean(self) -> None:
        """Drop what nothing refers to any more, and what a killed run left; nothing applied: the folder itself."""
        state = self.state()
        for litter in (*self.folder.glob("*.tmp"), self.folder / "probe"):
            litter.unlink(missing_ok=True)
        if state is None:
            shutil.rmtree(self.folder / "objects", ignore_errors=True)
            with suppress(OSError):  # never more than is ours: the folder may be one that the user named
                self.folder.rmdir()
            return
        entries = [*state.files, *state.caches, *([state.record] if state.record else [])]
        wanted = {item.pristine_sha256 for item in entries}
        for path in (self.folder / "objects").iterdir():
            if path.name not in wanted:
                path.unlink()

    def _json(self, name: str, schema: str) -> dict[str, Any] | None:
        try:
            data = (self.folder / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        value: Any = self._checked(name, lambda: json.loads(data))
        if not isinstance(value, dict) or value.get("schema") != schema:
            raise PatchError(f"{self.folder / name} is not a {schema} file", remedy=_LOST)
        return value

    def _checked(self, name: str, read: Any) -> Any:
        try:
            return read()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise PatchError(f"{self.folder / name} is damaged: {error}", remedy=_LOST) from error

    def _write_json(self, name: str, value: dict[str, Any] | None) -> None:
        if value is None:
            (self.folder / name).unlink(missing_ok=True)
            sync_folder(self.folder)
        else:
            self._write(name, json.dumps(value, indent=1, sort_keys=True).encode() + b"\n")

    def _write(self, name: str, data: bytes) -> None:
        target = self.folder / name
        temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
        sync_folder(target.parent)


def write_output(path: Path, data: bytes) -> None:
    """Write a file that the user asked for by name; refuses a place that cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", remedy="Name another file.") from error


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def inside(path: str) -> str:
    """A relative POSIX path that stays in its tree; refuses any other."""
    pure = PurePosixPath(path)
    if not path or pure.is_absolute() or ".." in pure.parts or "\\" in path or "\0" in path:
        raise ValueError(f"the path {path!r} leaves the tree")
    return path


_LOST = "Reinstall SGLang (pip install --force-reinstall --no-deps) and remove the state folder."


def _entry_from(data: dict[str, Any]) -> Entry:
    return Entry(
        inside(data["path"]),
        str(data["pristine_sha256"]),
        str(data["patched_sha256"]),
        int(data["pristine_mtime_ns"]),
        int(data["pristine_mode"]),
    )


def _step_from(data: dict[str, Any]) -> StepResult:
    return StepResult(
        id=str(data["id"]),
        outcome=StepOutcome(data["outcome"]),
        variant=str(data["variant"]),
        files=tuple(inside(path) for path in data["files"]),
        summary=str(data["summary"]),
    )


def _state_from(data: dict[str, Any]) -> State:
    return State(
        patchset=PatchsetIdentity(**data["patchset"]),
        version=str(data["version"]),
        steps=tuple(_step_from(item) for item in data["steps"]),
        files=tuple(_entry_from(item) for item in data["files"]),
        record=_entry_from(data["record"]) if data["record"] else None,
        caches=tuple(_entry_from(item) for item in data["caches"]),
        folders=tuple(inside(item) for item in data["folders"]),
        drift={inside(path): str(digest) for path, digest in data["drift"].items()},
        whole=bool(data["whole"]),
    )


def _journal_from(data: dict[str, Any]) -> Journal:
    changes = tuple(
        JournalEntry(
            inside(item["path"]),
            str(item["before_sha256"]),
            str(item["after_sha256"]),
            int(item["before_mode"]),
            int(item["before_mtime_ns"]),
            inside(item["staged"]) if item["staged"] else "",
        )
        for item in data["changes"]
    )
    state = data["state"]
    if state is not None:
        _state_from(state)
    return Journal(int(data["pid"]), changes, tuple(inside(item) for item in data["folders"]), state)
