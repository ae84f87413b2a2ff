"""Files as wheels really ship them: put into a tiny installation with their digests in its RECORD."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ddtree_patcher.records import row_for
from transaction.world import RECORD, World

BOM = b"\xef\xbb\xbf"
OLD = 1_600_000_000_000_000_000


def ship(world: World, files: Mapping[str, bytes]) -> None:
    """Write files as if the installer had: listed in RECORD, and old."""
    for path, data in files.items():
        (world.site / path).parent.mkdir(parents=True, exist_ok=True)
        (world.site / path).write_bytes(data)
    record = world.site / RECORD
    known = sorted(item for item in (world.site / "tiny").rglob("*") if item.is_file())
    rows = [row_for(item.relative_to(world.site).as_posix(), item.read_bytes()) for item in known]
    record.write_bytes("".join(f"{row}\r\n" for row in [*rows, f"{RECORD},,"]).encode())
    for item in (*known, record):
        os.utime(item, ns=(OLD, OLD))


def world_of(folder: Path, files: Mapping[str, bytes]) -> World:
    """An installation that has these files too, and a patchset that was not applied yet."""
    world = World(folder.resolve())
    world.install()
    world.write_patchset()
    ship(world, files)
    return world
