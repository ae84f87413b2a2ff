"""The state folder: pristine bytes by digest, what is applied, and the journal of a transaction under way.

Layout, in ``<folder that holds the package>/.ddtree-patch/`` or ``--state-dir``::

    state.json       what is applied (absent: nothing)
    journal.json     a transaction that has not ended (absent: none)
    objects/<sha256> bytes that a revert or a recovery needs

The content is data: none of it is run, its size is bounded before it is read, digests are checked before use, and a
path that leaves the tree is refused.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from . import attributes, disk
from .digest import sha256
from .errors import EnvironmentRefused, PatchError
from .model import PatchsetIdentity, StepOutcome, StepResult

NAME = ".ddtree-patch"
STATE_SCHEMA = "ddtree-patch.state/1"
LIMIT = 64 * 1024 * 1024  # bytes of a state or a journal: one of every file of an SGLang is a tenth of that
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
    root: str = ""  # the package folder that it was applied to; empty where an earlier version wrote the state

    def entry(self, path: str) -> Entry | None:
        return next((item for item in self.files if item.path == path), None)


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One change under way; empty digests mean: no file."""

    path: str
    before_sha256: str
    after_sha256: str
    before_mode: int  # 0 where there was no file
    before_mtime_ns: int  # likewise
    staged: str  # the temporary file beside it, for what it becomes and for what is put back


@dataclass(frozen=True, slots=True)
class Journal:
    """A transaction that has begun. ``state`` is state.json as it was before (None: there was none)."""

    pid: int
    changes: tuple[JournalEntry, ...]
    folders: tuple[str, ...]
    state: dict[str, Any] | None


class Store:
    """One state folder. Reading never creates anything."""

    def __init__(self, folder: Path, tree: Path | None = None) -> None:
        self.folder = folder
        self.tree = tree  # whose state it is; None: nothing is known of it

    @classmethod
    def beside(cls, folder: Path, state_dir: str = "") -> Store:
        """The store of the package in ``folder``; below a named folder each installation has one of its own."""
        if not state_dir:
            return cls(folder / NAME, folder)
        return cls(Path(state_dir).absolute() / sha256(os.fsencode(folder))[:16], folder)

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
        data = disk.read(self.folder / "objects" / digest)
        if data is None:
            raise PatchError(f"{self.folder} has lost the bytes {digest[:12]}…", remedy=_LOST)
        if sha256(data) != digest:
            raise PatchError(f"{self.folder}/objects/{digest[:12]}… is damaged", remedy=_LOST)
        return data

    def put(self, data: bytes) -> str:
        """Keep bytes, in place of damaged ones; returns their digest. Durable with the journal."""
        digest = sha256(data)
        known = disk.read(self.folder / "objects" / digest)
        if known is None or sha256(known) != digest:
            self._write(f"objects/{digest}", data)
        return digest

    def write_state(self, state: State | None) -> None:
        self.write_raw_state(None if state is None else {"schema": STATE_SCHEMA, **asdict(state)})

    def write_raw_state(self, value: dict[str, Any] | None) -> None:
        if value is None:
            disk.unlink(self.folder / "state.json")
        else:
            self._write("state.json", _to_json(value))
        disk.sync_folder(self.folder)

    def write_journal(self, journal: Journal) -> None:
        """Begin a transaction, durably, and with it all that was put."""
        disk.sync_folder(self.folder / "objects")
        self._write("journal.json", _to_json({"schema": JOURNAL_SCHEMA, **asdict(journal)}))
        disk.sync_folder(self.folder)

    def end_journal(self) -> None:
        """End a transaction, and tidy up. It has ended once the name is gone: tidying is no reason to fail.

        Where a power cut brings the name back, the whole transaction is undone, and what that needs is still there.
        """
        disk.unlink(self.folder / "journal.json")
        self.clean()

    def open(self) -> None:
        """Make the folder, for those to write who may write into the tree; refuses where that is not possible."""
        try:
            disk.make_folder(self.folder / "objects", self.tree)
            disk.make_file(self.folder / "probe", b"", attributes.beside(self.folder))
            disk.unlink(self.folder / "probe")
        except OSError as error:
            raise EnvironmentRefused(
                f"the state folder {self.folder} is not writable: {error.strerror}",
                remedy="Run as its owner, or choose another folder with --state-dir or DDTREE_PATCH_STATE_DIR.",
            ) from error

    def clean(self) -> None:
        """Drop what nothing refers to any more, and what a killed run left; nothing applied: the folder itself.

        Called when there is no journal. What cannot be removed now is removed by the next command.
        """
        with suppress(OSError, EnvironmentRefused):
            self._tidy()

    def _tidy(self) -> None:
        """That there is no journal is made durable before anything that it needs is dropped."""
        if not disk.is_folder(self.folder):
            return
        disk.sync_folder(self.folder)
        for name in disk.names(self.folder):
            if name.endswith(".tmp") or name == "probe":
                disk.unlink(self.folder / name)
        state = self.state()
        entries = [*state.files, *state.caches, *([state.record] if state.record else [])] if state else []
        wanted = {item.pristine_sha256 for item in entries}
        for name in disk.names(self.folder / "objects"):
            if name not in wanted:
                disk.unlink(self.folder / "objects" / name)
        if state is None:  # never more than is ours: the folder may be one that the user named
            disk.remove_folder(self.folder / "objects")
            disk.remove_folder(self.folder)

    def _json(self, name: str, schema: str) -> dict[str, Any] | None:
        self._refuse_odd(name)
        try:
            data = disk.read(self.folder / name)
        except OSError as error:
            remedy = "Run as the owner of the installation."
            raise EnvironmentRefused(f"{self.folder / name} cannot be read: {error.strerror}", remedy=remedy) from error
        if data is None:
            return None
        value: Any = self._checked(name, lambda: json.loads(data))
        if not isinstance(value, dict) or value.get("schema") != schema:
            raise PatchError(f"{self.folder / name} is not a {schema} file", remedy=_LOST)
        return value

    def _refuse_odd(self, name: str) -> None:
        """Raise, before anything is read, for a folder that is a link (what is tidied up there is not ours), for what
        is no file (a pipe would never end) and for what holds more than any file of ours."""
        for folder in (self.folder, self.folder / "objects"):
            if folder.is_symlink():
                raise EnvironmentRefused(
                    f"the state folder {folder} is a symbolic link to {os.path.realpath(folder)}",
                    remedy="Remove the link; --state-dir or DDTREE_PATCH_STATE_DIR names another folder.",
                )
        self._refuse_others()
        try:
            status = (self.folder / name).stat()
        except OSError:
            return  # reading it says what is wrong
        if not stat.S_ISREG(status.st_mode) or status.st_size > LIMIT:
            what = "too large to be ours" if stat.S_ISREG(status.st_mode) else "no file"
            raise PatchError(f"{self.folder / name} is {what}", remedy=_LOST)

    def _refuse_others(self) -> None:
        """Raise for a folder that somebody could have written who may not write where the installation lies."""
        if self.tree is None:
            return
        try:
            state = self.folder.stat()  # once: another run may just have removed it
        except (FileNotFoundError, NotADirectoryError):
            return
        if not stat.S_ISDIR(state.st_mode):
            return
        if why := distrust(state, self.tree.stat(), os.geteuid()):
            raise EnvironmentRefused(
                f"the state folder {self.folder} {why}: what it says could be anybody's",
                remedy="Remove it if it is not yours, or take the right away from others (chmod go-w).",
            )

    def _checked(self, name: str, read: Any) -> Any:
        try:
            return read()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
            raise PatchError(f"{self.folder / name} is damaged: {error}", remedy=_LOST) from error

    def _write(self, name: str, data: bytes) -> None:
        """The file whole or not at all. Its name is durable once its folder is synced."""
        target = self.folder / name
        temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
        disk.make_file(temporary, data, attributes.beside(target.parent))
        disk.replace(temporary, target)


def refusal_to_write(folder: Path) -> str:
    """Why nothing can be written into a folder, in the system's words; empty where it can be.

    Asked by making a file without a name: ``os.access`` answers for other reasons than those that count (NeMo-RL
    #3913), and is asked only where the file system has no such files.
    """
    try:
        disk.try_to_write(folder)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
            return "" if os.access(folder, os.W_OK | os.X_OK) else os.strerror(errno.EACCES)
        return error.strerror or str(error)
    return ""


def distrust(state: os.stat_result, tree: os.stat_result, me: int) -> str:
    """Why a state folder is not believed, in words: who may write there may put bytes into the tree; empty: it is."""
    if state.st_uid not in (me, 0, tree.st_uid):
        return f"belongs to user {state.st_uid}"
    if state.st_mode & ~tree.st_mode & 0o022:
        return "may be written by users who may not write where SGLang lies"
    return ""


def inside(path: str) -> str:
    """A relative POSIX path that stays in its tree; refuses any other."""
    pure = PurePosixPath(path)
    if str(pure) != path or not pure.name or pure.is_absolute() or ".." in pure.parts or {"\\", "\0"} & {*path}:
        raise ValueError(f"the path {path!r} leaves the tree")
    if any(ord(letter) < 32 for letter in path):
        raise ValueError(f"the path {path!r} holds control characters")
    os.fsencode(path)  # refuses what no file can be called
    return path


def _to_json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True).encode() + b"\n"


def digest_in(text: Any) -> str:
    """A SHA-256 digest in lower-case hex, or nothing; refuses what is neither: it names a file of the state folder."""
    if not isinstance(text, str) or not _DIGEST.fullmatch(text):
        raise ValueError(f"{text!r:.80} is no digest")
    return text


def identity_in(data: dict[str, Any]) -> PatchsetIdentity:
    """Which patchset a plan or a state says that it is of."""
    given = PatchsetIdentity(**data)
    for text in (given.id, given.version):
        line_in(text)
    digest_in(given.digest)
    return given


_DIGEST = re.compile(r"([0-9a-f]{64})?")


def line_in(text: Any) -> str:
    """Text that may be shown on a terminal."""
    if not isinstance(text, str) or not text.isprintable():
        raise ValueError(f"{text!r:.80} is no line of text")
    return text


def _number(value: Any, limit: int) -> int:
    number = int(value)
    if abs(number) > limit:
        raise ValueError(f"{str(number)[:20]} is out of range")
    return number


def _time(value: Any) -> int:
    return _number(value, 2**63 - 1)


def _mode(value: Any) -> int:
    return _number(value, 0o7777)


_LOST = "Reinstall SGLang (pip install --force-reinstall --no-deps) and remove the state folder."


def _entry_from(data: dict[str, Any]) -> Entry:
    return Entry(
        inside(data["path"]),
        digest_in(data["pristine_sha256"]),
        digest_in(data["patched_sha256"]),
        _time(data["pristine_mtime_ns"]),
        _mode(data["pristine_mode"]),
    )


def _step_from(data: dict[str, Any]) -> StepResult:
    return StepResult(
        id=line_in(data["id"]),
        outcome=StepOutcome(data["outcome"]),
        variant=line_in(data["variant"]),
        files=tuple(inside(path) for path in data["files"]),
        summary=line_in(data["summary"]),
    )


def _state_from(data: dict[str, Any]) -> State:
    return State(
        patchset=identity_in(data["patchset"]),
        version=line_in(data["version"]),
        steps=tuple(_step_from(item) for item in data["steps"]),
        files=tuple(_entry_from(item) for item in data["files"]),
        record=_entry_from(data["record"]) if data["record"] else None,
        caches=tuple(_entry_from(item) for item in data["caches"]),
        folders=tuple(inside(item) for item in data["folders"]),
        drift={inside(path): digest_in(digest) for path, digest in data["drift"].items()},
        whole=bool(data["whole"]),
        root=str(data.get("root", "")),
    )


def _journal_from(data: dict[str, Any]) -> Journal:
    changes = tuple(
        JournalEntry(
            inside(item["path"]),
            digest_in(item["before_sha256"]),
            digest_in(item["after_sha256"]),
            _mode(item["before_mode"]),
            _time(item["before_mtime_ns"]),
            inside(item["staged"]),
        )
        for item in data["changes"]
    )
    state = data["state"]
    if state is not None:
        _state_from(state)
    return Journal(_number(data["pid"], 2**31), changes, tuple(inside(item) for item in data["folders"]), state)
