"""Bytes by path, and their digest: what everything that looks at files without reading code needs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

Read = Callable[[str], bytes]  # raises FileNotFoundError


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read_from(folder: Path) -> Read:
    """Read files below a folder."""

    def read(path: str) -> bytes:
        return (folder / path).read_bytes()

    return read
