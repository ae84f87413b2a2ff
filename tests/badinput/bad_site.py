"""What the tests of bad input stand on: a tree to edit, the listing of a folder, and what a refusal must say."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from ddtree_patcher.model import ExitCode
from ddtree_patcher.records import row_for

SCHEDULER = "sglang/srt/managers/scheduler.py"
SERVER_ARGS = "sglang/srt/server_args.py"
SPECULATIVE_HOOK = "sglang/srt/arg_groups/speculative_hook.py"
SPEC_INFO = "sglang/srt/speculative/spec_info.py"
SPEC_REGISTRY = "sglang/srt/speculative/spec_registry.py"
DFLASH_INFO = "sglang/srt/speculative/dflash_info.py"
DFLASH_WORKER = "sglang/srt/speculative/dflash_worker.py"
DFLASH_WORKER_V2 = "sglang/srt/speculative/dflash_worker_v2.py"
DDTREE_ARGS = "sglang/srt/speculative/ddtree_args.py"
DDTREE_WORKER = "sglang/srt/speculative/ddtree_worker.py"
ELSEWHERE = "sglang/version.py"  # a file that no step looks at

APPLY = ("apply", "--verify", "static")
STATE = ".ddtree-patch"


class Result(Protocol):
    """How one run of the command line ended."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any: ...

    @property
    def codes(self) -> list[str]: ...

    @property
    def outcomes(self) -> dict[str, str]: ...


Edit = Callable[[bytes], bytes] | bytes | None
Listing = dict[str, tuple[int, int, str]]


def listing(folder: Path) -> Listing:
    """Every file and folder below a folder: mode, modification time, digest (of a link: where it leads)."""
    root = str(folder)
    found: Listing = {"": (os.lstat(root).st_mode, os.lstat(root).st_mtime_ns, "")}
    for parent, folders, files in os.walk(root):
        for path in [f"{parent}/{name}" for name in (*folders, *files)]:
            found[path[len(root) + 1 :]] = _facts(path)
    return found


def changed(before: Listing, after: Listing) -> list[str]:
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def changed_files(before: Listing, folder: Path) -> list[str]:
    """Files that differ, are new or are gone. Folders that something passed through have new times and do not count."""
    after = listing(folder)
    return [
        name
        for name in changed(before, after)
        if not all(stat.S_ISDIR(side[name][0]) for side in (before, after) if name in side)
    ]


@contextmanager
def untouched(*folders: Path) -> Iterator[None]:
    """Fails where anything below these folders is written, the state folder included."""
    before = [listing(folder) for folder in folders]
    yield
    for folder, old in zip(folders, before, strict=True):
        assert changed(old, listing(folder)) == []


@dataclass(frozen=True)
class Site:
    """A folder that holds ``sglang/``. Its files are hard links to a shared tree: they are replaced, never written."""

    folder: Path
    edited: list[str] = field(default_factory=list)

    @property
    def dist_info(self) -> str:
        (found,) = self.folder.glob("sglang-*.dist-info")
        return found.name

    @property
    def record(self) -> str:
        return f"{self.dist_info}/RECORD"

    def bytes_of(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def edit(self, name: str, edit: Edit) -> bytes:
        """Replace a file: by bytes, by what a function makes of it, or (None) by nothing. Returns what is there now."""
        path = self.folder / name
        old = path.read_bytes() if path.exists() else b""
        new = edit(old) if callable(edit) else edit
        assert new != old, f"{name}: this edit changes nothing"
        path.unlink(missing_ok=True)
        if new is not None:
            path.write_bytes(new)
        self.edited.append(name)
        return new or b""

    def put_back(self, original: Path) -> None:
        """Every edited file as it was."""
        for name in dict.fromkeys(self.edited):
            (self.folder / name).unlink(missing_ok=True)
            if (original / name).exists():
                os.link(original / name, self.folder / name)
        self.edited.clear()

    def bless(self, *names: str) -> None:
        """Let RECORD say that these files, as they are now, are SGLang's own."""
        rows = {name: row_for(name, self.bytes_of(name)) for name in names}
        lines = self.bytes_of(self.record).decode().splitlines()
        kept = [line for line in lines if line.rpartition(",")[0].rpartition(",")[0] not in rows]
        self.edit(self.record, "".join(f"{line}\n" for line in [*kept, *rows.values()]).encode())

    def renumber(self, version: str) -> None:
        """As if another release had this content."""
        old, new = self.dist_info, f"sglang-{version}.dist-info"
        (self.folder / old).rename(self.folder / new)
        number = old.removeprefix("sglang-").removesuffix(".dist-info")
        self.edit(f"{new}/METADATA", replacing(f"\nVersion: {number}\n".encode(), f"\nVersion: {version}\n".encode()))
        self.edit(f"{new}/RECORD", lambda data: data.replace(old.encode(), new.encode()))

    def lay_over(self, other: Path) -> None:
        """What an installer does: the other tree's files and metadata in place of these; nothing else is removed."""
        shutil.rmtree(self.folder / self.dist_info)
        for parent, _, files in os.walk(other):
            target = self.folder / Path(parent).relative_to(other)
            target.mkdir(exist_ok=True)
            for name in files:
                (target / name).unlink(missing_ok=True)
                os.link(Path(parent, name), target / name)


def replacing(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    """An edit of the one place where ``old`` stands (the first, where there are several)."""

    def edit(data: bytes) -> bytes:
        assert old in data, f"{old!r} is not there"
        return data.replace(old, new, 1)

    return edit


def doubling(line: bytes) -> Callable[[bytes], bytes]:
    return replacing(line, line + line)


def appending(more: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data + more


def errors(result: Result) -> list[dict[str, Any]]:
    return [item for item in result.json["diagnostics"] if item["severity"] == "error"]


def _at(place: dict[str, Any]) -> str:
    """The line of code that a candidate is."""
    (text,) = (row["text"] for row in place["context"] if row["line"] == place["line"])
    return str(text)


def refused(result: Result, code: ExitCode, word: str, *says: str) -> dict[str, Any]:
    """The first error of a refusal. It has the right word, names what is wrong, and has a remedy."""
    report = result.json
    assert (result.exit_code, report["exit_code"], report["exit_name"]) == (int(code), int(code), code.symbol), (
        result.stdout
    )
    first = errors(result)[0]
    assert first["code"] == word, result.stdout
    places = [f"line {item['line']}: {_at(item).strip()}" for item in first["candidates"]]
    text = "\n".join([first["summary"], first["detail"], first["expected"], *places, first["path"]])
    for phrase in says:
        assert phrase in text, f"{phrase!r} is not in {text!r}"
    assert first["remedy"], first
    assert "Traceback" not in result.stdout + result.stderr
    return first


def _facts(path: str) -> tuple[int, int, str]:
    status = os.lstat(path)
    content = ""
    if stat.S_ISLNK(status.st_mode):
        content = os.readlink(path)
    elif stat.S_ISREG(status.st_mode):
        # Whoever writes to a file changes the last of these, which nobody can set.
        content = _digest(path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return status.st_mode, status.st_mtime_ns, content


@cache
def _digest(path: str, *unchanged_since: int) -> str:
    with open(path, "rb") as file:
        return hashlib.blake2b(file.read()).hexdigest()
