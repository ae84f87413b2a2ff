"""A release as its wheel has it: read from the archive, nothing unpacked, each file proved by its own RECORD."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from .. import records
from ..digest import sha256
from ..errors import EnvironmentRefused, UsageError
from ..snapshot_sources import WheelSource, read_wheel


@dataclass(frozen=True)
class ProvedWheel:
    """A wheel, opened. Reading raises ``FileNotFoundError``, or ``EnvironmentRefused`` for bytes that RECORD denies."""

    source: WheelSource
    record: records.Record
    path: Path

    def read(self, name: str) -> bytes:
        try:
            data = self.source.read(name)
        except UsageError as error:  # a damaged archive
            raise EnvironmentRefused(error.summary, remedy=_anew(self.path), path=name) from error
        if self.recorded(name) != sha256(data):
            raise EnvironmentRefused(
                f"{self.path}: {name} is not what the wheel's RECORD says", remedy=_anew(self.path), path=name
            )
        return data

    def recorded(self, name: str) -> str:
        """What RECORD says a file's digest is; empty where it does not say."""
        row = self.record.rows.get(name)
        return row.sha256 if row else ""

    @property
    def folders(self) -> frozenset[str]:
        """Every folder in it, as a path."""
        names = self.source.names
        return frozenset(name[:place] for name in names for place, sign in enumerate(name) if sign == "/")


def open_wheel(path: Path, version: str) -> ProvedWheel:
    """Raises ``EnvironmentRefused`` for a file that is no whole wheel of that version."""
    try:
        source = read_wheel(path)
        (name,) = (name for name in source.names if name.count("/") == 1 and name.endswith(".dist-info/RECORD"))
        record = records.parse(source.read(name), f"{path.name}: {name}")
    except UsageError as error:
        raise EnvironmentRefused(error.summary, remedy=_anew(path), path=str(path)) from error
    except ValueError as error:
        raise EnvironmentRefused(f"{path} has no RECORD, or several", remedy=_anew(path), path=str(path)) from error
    if Version(source.version) != Version(version):
        reason = f"{path} is of {source.version}, not of {version}"
        raise EnvironmentRefused(reason, remedy=_anew(path), path=str(path))
    return ProvedWheel(source, record, path)


def _anew(path: Path) -> str:
    return f"Delete {path}: it is fetched anew."
