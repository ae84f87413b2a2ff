"""Files that the user asked for by name, outside every installation."""

from __future__ import annotations

from pathlib import Path

from .errors import UsageError


def write_output(path: Path, data: bytes) -> None:
    """Write such a file; refuses a place that cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", remedy="Name another file.") from error
