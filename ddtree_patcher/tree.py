"""The files of a package as a mapping from path to bytes, read once and parsed once.

Paths are POSIX, relative to the folder that holds the package. A tree may lie over another one: the planner's view of
what the files will be, and a test's view of what they were, are both trees.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from .codemods.source import Source
from .digest import Read, sha256


class Tree:
    """A view of files; ``read`` is what lies below, ``files`` what lies over it."""

    def __init__(self, read: Read, files: Mapping[str, bytes] | None = None) -> None:
        self._read = read
        self._known: dict[str, bytes | None] = dict(files or {})

    def get(self, path: str) -> bytes | None:
        """The bytes of a file; ``None`` where there is none."""
        if path not in self._known:
            try:
                self._known[path] = self._read(path)
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                self._known[path] = None
        return self._known[path]

    def put(self, path: str, data: bytes) -> None:
        self._known[path] = data

    def source(self, path: str) -> Source | None:
        """A file parsed; ``None`` where there is none; raises SourceError where it is not Python."""
        data = self.get(path)
        if data is None:
            return None
        return _parsed(data, path)

    def digests(self) -> dict[str, str]:
        """The digest of every file that was asked for ("" where there was none)."""
        return {path: "" if data is None else sha256(data) for path, data in sorted(self._known.items())}


# Several trees hold the same bytes: pristine, planned, on disk. A file is parsed once for all of them.
_parsed = lru_cache(maxsize=256)(Source.parse)


def forget_parsed() -> None:
    """Let go of every parsed file: one who is done with a whole package need not keep it in memory."""
    _parsed.cache_clear()
