"""What a tree is, file by file: to prove that nothing was written, or that everything was put back."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import wheel_tree


class Footprint(NamedTuple):
    """One file: a write in any way, even of the same bytes, changes one of these."""

    inode: int
    mtime_ns: int
    mode: int
    size: int


def footprints(folder: Path) -> dict[str, Footprint]:
    """Every file below a folder, the state folder's included, and every folder that holds nothing."""
    return {name: _footprint(folder / name) for name in wheel_tree.files(folder)}


def times(folder: Path) -> dict[str, int]:
    """The modification time of every file, in nanoseconds."""
    return {name: item.mtime_ns for name, item in footprints(folder).items()}


def _footprint(path: Path) -> Footprint:
    found = path.lstat()
    return Footprint(found.st_ino, found.st_mtime_ns, found.st_mode, found.st_size)
