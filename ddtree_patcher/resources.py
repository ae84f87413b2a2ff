"""The data that comes with the tool: packaged beside the code in a wheel, at the top of a checkout otherwise."""

from __future__ import annotations

from pathlib import Path


def folder(name: str) -> Path:
    """``patchsets``, ``snapshots`` or ``docs`` (of which a wheel has what the tool itself quotes)."""
    package = Path(__file__).resolve().parent
    packaged = package / f"_{name}"
    return packaged if packaged.is_dir() else package.parent / name
