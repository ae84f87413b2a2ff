"""A disk that loses what was not synced: which trees there can be after a power cut.

What POSIX promises, and no more: the bytes, mode and time of a file as they were at its last ``fsync``; a name as it
was at the last ``fsync`` of its folder. Whatever was done since then happened, or did not: each of the later changes to
names by itself, in any selection, for no order between them is promised.
"""

from __future__ import annotations

import copy
import itertools
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from .world import Footprint

# Calls that change nothing, or an owner, which is not looked at.
_NOTHING_IS_KEPT_OF = (os.stat, os.fstat, os.listdir, Path.read_bytes, os.chown, os.fchown)

Names = dict[str, "Inode | None"]  # path -> what has that name then
Change = tuple[str, Names]  # in which folder, and which names


def selections(every: list[Change], exhaustive: int) -> Iterator[Sequence[Change]]:
    """What of the changes to names may have happened: none, all, and each alone; of a few: every selection of them."""
    if len(every) <= exhaustive:
        for size in range(len(every) + 1):
            yield from itertools.combinations(every, size)
        return
    yield ()
    yield every
    for change in every:
        yield (change,)


@cache
def _above(path: str) -> str:
    return os.path.dirname(path)


@dataclass
class Inode:
    """A file or a folder. ``synced`` is what a power cut leaves of a file: None, where it was never synced."""

    folder: bool
    mode: int
    data: bytes = b""
    when: int = 0
    synced: tuple[bytes, int, int] | None = None

    def kept(self) -> tuple[bytes, int, int]:
        return self.data, self.mode, self.when

    def left(self) -> tuple[bytes, int, int]:
        """After a power cut, at its worst: half of the bytes, and the mode that the file was made with."""
        return self.synced or (self.data[: len(self.data) // 2], 0o600, 0)


@dataclass
class Disk:
    """``durable``: path -> inode as a power cut leaves it; ``pending``: changes of names since, by folder."""

    root: Path
    durable: dict[str, Inode] = field(default_factory=dict)
    pending: list[Change] = field(default_factory=list)
    opened: dict[int, tuple[str, Inode | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, root: Path, footprint: Footprint) -> Disk:
        """A disk on which everything is durable."""
        disk = cls(root)
        for name, (data, mode, when) in footprint.items():
            folder = name.endswith("/")
            disk.durable[name.rstrip("/")] = Inode(folder, mode, data, when, None if folder else (data, mode, when))
        return disk

    def copy(self) -> Disk:
        """As it is now, with no file open."""
        return copy.deepcopy(Disk(self.root, self.durable, self.pending))

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Make a system call, and note what it does. No file is truly synced."""
        if function is os.fsync:
            self._sync(*self.opened[arguments[0]])
            return None
        result = function(*arguments, **options)
        if function is os.open:
            path = self._name(arguments[0])
            if arguments[1] & os.O_CREAT:
                self._rename({path: Inode(False, stat.S_IMODE(os.fstat(result).st_mode))})
            self.opened[result] = path, self._live().get(path)
        elif function is os.write:
            self._inode(arguments[0]).data += bytes(arguments[1][:result])
        elif function is os.fchmod:
            self._inode(arguments[0]).mode = arguments[1]
        elif function is os.utime:
            self._inode(arguments[0]).when = options["ns"][1]
        elif function is os.close:
            del self.opened[arguments[0]]
        elif function is os.replace:
            source, target = map(self._name, arguments)
            assert os.path.dirname(source) == os.path.dirname(target)
            self._rename({source: None, target: self._live()[source]})
        elif function in (os.unlink, os.rmdir):
            self._rename({self._name(arguments[0]): None})
        elif function is os.mkdir:
            self._rename({self._name(arguments[0]): Inode(True, stat.S_IMODE(os.lstat(arguments[0]).st_mode))})
        elif function is os.chmod:
            folder = self._live()[self._name(arguments[0])]
            assert folder is not None
            folder.mode = arguments[1]
        else:
            assert function in _NOTHING_IS_KEPT_OF, function
        return result

    def now(self) -> Footprint:
        """The tree as a process sees it, and as kill -9 leaves it."""
        return self._image(self.pending, Inode.kept)

    def after_a_power_cut(self, exhaustive: int = 5) -> Iterator[Footprint]:
        """The trees that there can be, that of :meth:`now` among them, some several times. See :func:`selections`."""
        ways = (Inode.left, Inode.kept) if self._unsynced() else (Inode.kept,)
        for chosen in selections(self.pending, exhaustive):
            for of in ways:
                yield self._image(chosen, of)

    def _image(self, chosen: Sequence[Change], of: Callable[[Inode], tuple[bytes, int, int]]) -> Footprint:
        tree: dict[str, Inode | None] = dict(self.durable)
        for _, names in chosen:
            tree.update(names)
        folders = {path for path, inode in tree.items() if inode is not None and inode.folder} | {""}
        while lost := {path for path in folders if _above(path) not in folders}:
            folders -= lost
        found = {}
        for path, inode in tree.items():
            if inode is None or _above(path) not in folders:
                continue
            if inode.folder:
                found[f"{path}/"] = (b"", inode.mode, 0)
            else:
                data, mode, when = of(inode)
                found[path] = (data, mode, 0 if path.startswith(".ddtree-patch/") else when)
        return found

    def _unsynced(self) -> bool:
        """Whether there is a file that would lose something."""
        inodes = itertools.chain(self.durable.values(), *(names.values() for _, names in self.pending))
        return any(inode.left() != inode.kept() for inode in inodes if inode is not None and not inode.folder)

    def _live(self) -> dict[str, Inode | None]:
        tree: dict[str, Inode | None] = dict(self.durable)
        for _, names in self.pending:
            tree.update(names)
        return tree

    def _inode(self, descriptor: int) -> Inode:
        inode = self.opened[descriptor][1]
        assert inode is not None
        return inode

    def _name(self, path: Any) -> str:
        name = os.path.relpath(path, self.root)
        return "" if name == "." else name

    def _rename(self, names: Names) -> None:
        parent = os.path.dirname(next(iter(names)))
        self.pending.append((parent, names))

    def _sync(self, path: str, inode: Inode | None) -> None:
        if inode is not None and not inode.folder:
            inode.synced = inode.kept()
            return
        for _, names in [item for item in self.pending if item[0] == path]:
            for name, one in names.items():
                if one is None:
                    self.durable.pop(name, None)
                else:
                    self.durable[name] = one
        self.pending = [item for item in self.pending if item[0] != path]
