"""One writer at a time: an advisory lock on the package folder itself, so that it needs no file and no clean-up.

``flock(2)`` on the folder's descriptor: it is released by the kernel when its owner dies, it works on a read-only tree,
and two paths to one physical folder meet at the same lock. A process number that some file names is never believed: the
kernel alone says whether an owner lives. Readers do not keep the lock; they ask whether a writer has it.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import Locked

_PAUSE = 0.02  # seconds between two attempts
_GRACE = 1.0  # seconds in which nothing but readers, who ask for microseconds, can be in a writer's way
_PROC = Path("/proc")  # Linux: what the processes that can be seen from here have locked and opened


@contextmanager
def locked(folder: Path, timeout: float = 0.0) -> Iterator[None]:
    """Hold the lock of a folder; raises :class:`Locked` when another process keeps it for ``timeout`` seconds."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _acquire(descriptor, folder, timeout)
        yield
    finally:
        os.close(descriptor)


def is_held(folder: Path) -> bool:
    """Whether a living process holds the lock of a folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def owner(folder: Path) -> int:
    """The process that holds the lock of a folder; 0 where none does, or where it cannot be seen from here."""
    status = os.stat(folder)
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    try:
        rows = [line.split() for line in (_PROC / "locks").read_text("ascii").splitlines()]
    except OSError:
        return 0
    # 1: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF     (a waiting one has an arrow after its number)
    held = [row for row in rows if row[1] == "FLOCK" and row[3] == "WRITE" and row[5].endswith(f":{status.st_ino}")]
    for row in held:
        process, its_device = int(row[4]), row[5].rpartition(":")[0]
        if process > 0 and (its_device == device or _has_open(process, folder)):
            return process
    return 0


def _has_open(process: int, folder: Path) -> bool:
    """For file systems (btrfs, overlays) whose files have another device number than their locks."""
    real = os.path.realpath(folder)
    try:
        return any(os.path.realpath(item) == real for item in (_PROC / str(process) / "fd").iterdir())
    except OSError:
        return False


def busy(folder: Path, hint: int = 0) -> Locked:
    """What to raise while another process is at work; ``hint`` is the process that its journal names."""
    process = owner(folder) or hint
    who = f" (process {process})" if process else ""
    return Locked(
        f"another ddtree-patch{who} is at work on {folder}",
        remedy="Wait for it to end, or give it time with --lock-timeout SECONDS.",
    )


def _acquire(descriptor: int, folder: Path, timeout: float) -> None:
    start = time.monotonic()
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            waited = time.monotonic() - start
            if waited >= timeout and (owner(folder) or waited >= _GRACE):
                raise busy(folder) from None
            time.sleep(_PAUSE)
