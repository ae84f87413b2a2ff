"""Says, after a change, what may still run the old code: processes, and bytecode; nothing ever fails for it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from .. import processes
from ..installation import Installation
from ..model import Diagnostic, Severity
from ..processes import Environment, Running
from ..transaction import Change
from .changes import unchecked_caches
from .session import Session

_SHOWN = 20  # processes that are named


def still_running(session: Session, changes: Sequence[Change]) -> tuple[Diagnostic, ...]:
    """A warning that names the processes that were started before these changes were made; none without any."""
    if not changes:
        return ()
    try:
        found = processes.older_than(_moment(session, changes), _environment(session.installation))
    except (ImportError, OSError, RuntimeError) as error:  # no /proc, or none that can be read
        return (Diagnostic("running", Severity.NOTE, f"the running processes could not be looked at: {error}"),)
    return (_warning(found),) if found else ()


def outlived(session: Session, changes: Sequence[Change]) -> tuple[Diagnostic, ...]:
    """What a revert puts back in vain for some: processes, and bytecode elsewhere that is never checked."""
    caches = unchecked_caches(session, [change.path for change in changes])
    return (*map(_unchecked, caches), *still_running(session, changes))


def _unchecked(cache: Path) -> Diagnostic:
    return Diagnostic(
        "unchecked_bytecode",
        Severity.WARNING,
        f"{cache} is bytecode that Python never checks against its source (PEP 552): the old code runs on",
        remedy="Remove that file; it lies outside the installation, so nothing here touches it.",
    )


def _warning(found: Sequence[Running]) -> Diagnostic:
    lines = [f"process {item.pid}: {item.command} ({item.why})" for item in found[:_SHOWN]]
    more = [f"… and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    what = "process was" if len(found) == 1 else "processes were"
    return Diagnostic(
        "running",
        Severity.WARNING,
        f"{len(found)} running {what} started before this change and may still have the old code loaded",
        detail="\n".join([*lines, *more]),
        remedy="Restart them: a process keeps the code that it has imported.",
    )


def _moment(session: Session, changes: Sequence[Change]) -> int:
    """When the files that are there now got their names: checks may have run for minutes since."""
    written = [session.installation.folder / change.path for change in changes if change.after is not None]
    return max((os.stat(path).st_ctime_ns for path in written), default=time.time_ns())


def _environment(installation: Installation) -> Environment:
    """The installation's own interpreter is that whose site folder holds it, or the virtual environment around it."""
    around = (str(item) for item in installation.folder.parents if (item / "pyvenv.cfg").is_file())
    prefix = installation.interpreter.prefix if installation.in_interpreter else next(around, "")
    return Environment(installation.package, installation.folder, prefix)
