"""Somebody's source tree under git, asked without touching it: no index refreshed, no hook and no monitor run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "safe.directory=*", "--no-optional-locks")
_STATUS = ("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=no", "--")
_PATIENCE = 30.0  # seconds


def uncommitted(folder: Path, paths: Sequence[str]) -> list[str]:
    """Which of these files of ``folder`` are not as their repository has them.

    None where there is no git, or no repository that knows them.
    """
    if not paths:
        return []
    try:
        top = os.fsdecode(_ask(folder, "rev-parse", "--show-toplevel").rstrip(b"\n"))
        rows = _ask(folder, *_STATUS, *paths).split(b"\0")
    except (OSError, subprocess.SubprocessError):
        return []
    inside = os.path.relpath(folder, os.path.realpath(top))
    names = {os.path.relpath(os.fsdecode(row[3:]), inside) for row in rows if row}
    return [path for path in paths if path in names]


def _ask(folder: Path, *question: str) -> bytes:
    command = [*_GIT, "-C", str(folder), *question]
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_PATIENCE, check=True)
    return done.stdout
