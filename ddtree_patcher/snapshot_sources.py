"""Where the bytes of a snapshot come from: a wheel, or a folder that holds the package."""

from __future__ import annotations

import io
import zipfile
import zlib
from email.parser import BytesHeaderParser
from pathlib import Path
from typing import NamedTuple

from .digest import Read
from .errors import UsageError


class WheelSource(NamedTuple):
    """A wheel, opened: what it is, and how its files are read."""

    distribution: str
    version: str
    read: Read
    names: frozenset[str]  # its files


def read_folder(folder: Path) -> Read:
    """Reads files below ``folder`` (the one that holds ``sglang/``)."""

    def read(path: str) -> bytes:
        try:
            return (folder / path).read_bytes()
        except (NotADirectoryError, IsADirectoryError) as error:
            raise FileNotFoundError(path) from error

    return read


def read_wheel(path: Path) -> WheelSource:
    """Opens a wheel. Raises ``UsageError`` for what is no wheel: no file, no archive, no ``dist-info/METADATA``."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(path.read_bytes()))
    except OSError as error:
        raise _no_wheel(path, error.strerror or str(error)) from error
    except zipfile.BadZipFile as error:
        raise _no_wheel(path, str(error)) from error

    def read(name: str) -> bytes:
        try:
            return archive.read(name)
        except KeyError as error:
            raise FileNotFoundError(name) from error
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:  # damaged, encrypted, unknown method
            raise _no_wheel(path, f"{name}: {error}") from error

    found = [name for name in archive.namelist() if name.count("/") == 1 and name.endswith(".dist-info/METADATA")]
    if len(found) != 1:
        raise _no_wheel(path, f"it holds {len(found)} files *.dist-info/METADATA")
    metadata = BytesHeaderParser().parsebytes(read(found[0]))
    name, version = metadata["Name"], metadata["Version"]
    if not name or not version:
        raise _no_wheel(path, f"{found[0]} gives no name or no version")
    return WheelSource(str(name), str(version), read, frozenset(archive.namelist()))


def _no_wheel(path: Path, reason: str) -> UsageError:
    return UsageError(
        f"{path} is not a readable wheel: {reason}",
        path=str(path),
        remedy="name a .whl file, as `pip download --no-deps` fetches it",
    )
