"""What the tests of bad input stand on: a tree that is edited by replacing, its listing, and what a refusal must say."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ddtree_patcher.model import ExitCode
from ddtree_patcher.records import row_for

SERVER_ARGS = "sglang/srt/server_args.py"
SPECULATIVE_HOOK = "sglang/srt/arg_groups/speculative_hook.py"
SPEC_INFO = "sglang/srt/speculative/spec_info.py"
SPEC_REGISTRY = "sglang/srt/speculative/spec_registry.py"
DFLASH_INFO = "sglang/srt/speculative/dflash_info.py"
DFLASH_WORKER = "sglang/srt/speculative/dflash_worker.py"
DDTREE_ARGS = "sglang/srt/speculative/ddtree_args.py"
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
    found: Listing = {}
    for parent, folders, files in os.walk(folder):
        for name in ("", *folders, *files) if parent == str(folder) else (*folders, *files):
            path = Path(parent, name)
            status = path.lstat()
            content = os.readlink(path) if path.is_symlink() else "" if path.is_dir() else _digest(path)
            found[path.relative_to(folder).as_posix()] = (status.st_mode, status.st_mtime_ns, content)
    return found


def changed(before: Listing, after: Listing) -> list[str]:
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


@contextmanager
def untouched(*folders: Path) -> Iterator[None]:
    """Fails where anything below these folders is written, the state folder included."""
    before = [listing(folder) for folder in folders]
    yield
    for folder, old in zip(folders, before, strict=True):
        assert changed(old, listing(folder)) == []


@dataclass(frozen=True)
class Site:
    """A folder that holds ``sglang/``: every file is a hard link to a shared tree, so files are replaced, not written."""

    folder: Path

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
        return new or b""

    def bless(self, *names: str) -> None:
        """Let RECORD say that these files, as they are now, are SGLang's own."""
        rows = {name: row_for(name, self.bytes_of(name)) for name in names}
        lines = self.bytes_of(self.record).decode().splitlines()
        kept = [line for line in lines if line.rpartition(",")[0].rpartition(",")[0] not in rows]
        self.edit(self.record, "".join(f"{line}\n" for line in [*kept, *rows.values()]).encode())

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


def refused(result: Result, code: ExitCode, word: str, *says: str) -> dict[str, Any]:
    """The first error of a refusal. It has the right word, names what is wrong, and has a remedy."""
    report = result.json
    assert (result.exit_code, report["exit_code"], report["exit_name"]) == (int(code), int(code), code.symbol), (
        result.stdout
    )
    first = errors(result)[0]
    assert first["code"] == word, result.stdout
    text = "\n".join([first["summary"], first["detail"], first["path"]])
    for phrase in says:
        assert phrase in text, f"{phrase!r} is not in {text!r}"
    assert first["remedy"], first
    assert "Traceback" not in result.stdout + result.stderr
    return first


def _digest(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes()).hexdigest()
