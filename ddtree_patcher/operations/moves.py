"""Where a definition lives that its file has no more: a search of all bytes first, then of the few files that fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..codemods import Source, Target
from ..digest import Read
from ..errors import SourceError
from ..fingerprint import fingerprint


@dataclass(frozen=True)
class Move:
    """A definition of that name in another file. ``certain``: it is the one that was in the first file."""

    source: Source
    qualname: str
    line: int  # of the place that was looked for, where it is in there; else of the definition
    certain: bool

    @property
    def path(self) -> str:
        return self.source.path

    @property
    def score(self) -> float:
        return 1.0 if self.certain else 0.5


def find_move(path: str, target: Target, read: Read, files: Iterable[str], known_hash: str) -> Move | None:
    """The one definition in another file of what ``path`` does not define; none where there are several, or none.

    It is certain where it holds what was looked for, or has the hash that the symbol is known to have had.
    """
    missing = _missing(path, target.scope, read)
    if not missing:
        return None
    found = [move for file in files if file != path for move in _in_file(file, missing, target, read, known_hash)]
    certain = [move for move in found if move.certain]
    if len(certain) == 1:
        return certain[0]
    return found[0] if len(found) == 1 else None


def _missing(path: str, scope: str, read: Read) -> str:
    """The first part of a dotted name that the file does not define; empty where it defines all, or cannot be read."""
    try:
        source = Source.parse(read(path), path)
    except FileNotFoundError:
        return scope.partition(".")[0]
    except SourceError:
        return ""
    parts = scope.split(".")
    names = (".".join(parts[: index + 1]) for index in range(len(parts)))
    return next((name for name in names if name not in source.definitions), "")


def _in_file(file: str, missing: str, target: Target, read: Read, known_hash: str) -> Iterator[Move]:
    """The definitions in one file that may be the missing one. Methods are looked for in classes alone."""
    name = missing.rpartition(".")[2]
    try:
        data = read(file)
        if name.startswith("__") or not _mentions(data, name):
            return
        source = Source.parse(data, file)
    except (OSError, SourceError):
        return
    rest = target.scope.removeprefix(missing)
    for qualname, nodes in source.definitions.items():
        outer, _, last = qualname.rpartition(".")
        inner = source.definitions.get(f"{qualname}{rest}", [])
        if last != name or bool(outer) != ("." in missing) or len(nodes) != 1 or len(inner) != 1:
            continue
        line = target.line_in(inner[0])
        certain = bool(line) or known_hash in _hashes(data, f"{qualname}{rest}")
        yield Move(source, f"{qualname}{rest}", line or inner[0].lineno, certain)


def _mentions(data: bytes, name: str) -> bool:
    word = name.encode()
    return any(sign in data for sign in (b"def " + word + b"(", b"class " + word + b"(", b"class " + word + b":"))


def _hashes(data: bytes, qualname: str) -> set[str]:
    return {item.hash for item in fingerprint(data) if item.qualname == qualname}
