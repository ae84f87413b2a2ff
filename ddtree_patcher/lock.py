"""One writer at a time: an advisory lock on the package folder itself, so that it needs no file and no clean-up.

``flock(2)`` on the folder's descriptor: it is released by the kernel when its owner dies, it works on a read-only tree,
and two paths to one physical folder meet at the same lock.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import Locked

_PAUSE = 0.05  # seconds between two attempts


@contextmanager
def locked(folder: Path, timeout: float = 0.0) -> Iterator[None]:
    """Hold the lock of a folder; raises :class:`Locked` when another process keeps it for ``timeout`` seconds."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _acquire(descriptor, folder, time.monotonic() + timeout)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, folder: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not time.monotonic() < deadline:
                raise Locked(
                    f"another ddtree-patch is at work on {folder}",
                    remedy="Wait for it to end, or give it time with --lock-timeout SECONDS.",
                ) from None
            time.sleep(_PAUSE)
