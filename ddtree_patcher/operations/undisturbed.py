"""Looking at an installation that others may be writing to: what is said of it was so at one moment.

A writer's journal is there from before its first change until after its last one, and each change of the state folder
gives that folder another stamp. So a look during which there was no journal, and after which the stamp is the same, saw
no half of anything. Nothing is locked and nothing is written: a look works on a read-only tree.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from .. import lock
from ..errors import Locked, PatchError
from .session import Session

PATIENCE = 1.0  # seconds in which another process may end what it is in the middle of
_PAUSE = 0.02  # seconds between two looks
Result = TypeVar("Result")
Stamp = tuple[tuple[int, ...], ...]


def undisturbed(session: Session, look: Callable[[], Result], *, patience: float) -> Result:
    """What ``look`` gives at a moment at which no other process is in the middle of a change.

    Waits ``patience`` seconds, or ``--lock-timeout`` where that is longer; then raises :class:`Locked`. A journal that
    no living process works on is not waited for: it is the trace of one that died, and ``look`` may say so.
    """
    deadline = time.monotonic() + max(patience, session.options.lock_timeout)
    while True:
        before = _stamp(session.store.folder)
        if not _under_way(session):
            result, failure = _attempt(session, look)
            if _stamp(session.store.folder) == before:
                if failure is not None:
                    raise failure
                assert result is not None
                return result[0]
        if time.monotonic() >= deadline:
            raise _changing(session)
        time.sleep(_PAUSE)


def _attempt(session: Session, look: Callable[[], Result]) -> tuple[tuple[Result] | None, PatchError | OSError | None]:
    """A look at what is there now. What fails because it vanishes meanwhile is no failure of the installation."""
    try:
        session.look_again()
        return (look(),), None
    except (PatchError, OSError) as error:
        return None, error


def _under_way(session: Session) -> bool:
    """Whether a living process is in the middle of a change; one that died in it holds no lock."""
    if session.store.journal() is None:
        return False
    return lock.is_held(session.installation.root) or session.store.journal() is None


def _changing(session: Session) -> Locked:
    root, journal = session.installation.root, session.store.journal()
    if journal is not None or lock.is_held(root):
        return lock.busy(root, journal.pid if journal else 0)
    remedy = "Run it again when nothing else is at work there."
    return Locked(f"another ddtree-patch changed {root} while it was looked at", remedy=remedy)


def _stamp(folder: Path) -> Stamp:
    """Differs after every change of the state folder: its names, and the file that says what is applied."""
    found: list[tuple[int, ...]] = []
    for path in (folder, folder / "state.json", folder / "journal.json"):
        with suppress(OSError):
            status = os.stat(path)
            found.append((status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return tuple(found)
