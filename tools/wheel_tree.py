"""A wheel's files in a folder: put there as pip puts them, and compared with the wheel afterwards."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path


def unpack(wheel: Path, folder: Path) -> None:
    """Every file of a wheel in ``folder``, with pip's modes: 0o644, and 0o755 for what the wheel says is executable."""
    with zipfile.ZipFile(wheel) as archive:
        for item in archive.infolist():
            if not item.is_dir():
                target = Path(archive.extract(item, folder))
                target.chmod(_mode(item))


def differences(wheel: Path, folder: Path, changed: Mapping[str, bytes] | None = None) -> Iterator[str]:
    """One line for every file of ``folder`` that is not as the wheel has it, in bytes or in mode.

    ``changed`` are the files that an installer writes anew (RECORD) or adds (INSTALLER, bytecode), with their bytes.
    """
    expected = dict(changed or {})
    with zipfile.ZipFile(wheel) as archive:
        items = {item.filename: item for item in archive.infolist() if not item.is_dir()}
        for name in sorted({*items, *expected}):
            path = folder / name
            if not path.is_file() or path.is_symlink():
                yield f"{name} is gone"
                continue
            if path.read_bytes() != (expected[name] if name in expected else archive.read(name)):
                yield f"{name} has other bytes"
            if name in items and name not in expected and _own(path.stat().st_mode) != _mode(items[name]):
                yield f"{name} has mode {_own(path.stat().st_mode):o}, not {_mode(items[name]):o}"
    for name in sorted(set(files(folder)) - {*items, *expected}):
        yield f"{name} was left there"


def files(folder: Path) -> Iterator[str]:
    """Every file below ``folder``, and every folder that holds nothing, by its path relative to it."""
    for path in folder.rglob("*"):
        if not path.is_dir() or path.is_symlink() or not any(path.iterdir()):
            yield path.relative_to(folder).as_posix()


def names(wheel: Path) -> frozenset[str]:
    """The files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return frozenset(item.filename for item in archive.infolist() if not item.is_dir())


def _mode(item: zipfile.ZipInfo) -> int:
    return 0o755 if (item.external_attr >> 16) & 0o111 else 0o644


def _own(mode: int) -> int:
    return mode & 0o777
