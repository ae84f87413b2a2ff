"""What pristine code says of the names that the patchset watches: uses without a verdict, and names that are ours.

Every release is looked at, known or not. What a snapshot proves is the files that steps touch, and a new use may stand
in any other; a search of all bytes costs less than one parse of SGLang's largest file, and asks nobody to be trusted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from ..digest import Read
from ..installation import Installation
from ..model import Diagnostic, Severity, StepOutcome
from ..sentinels import Alarm, Sentinels, Site, alarms, foreign, survey
from ..store import State

UNKNOWN = "unknown_literal"
_REMEDY = (
    "Read the place: is what is added meant there too? Give the patchset a verdict on it "
    "(docs/writing-a-patchset.md, Sentinels), or go on without one with --allow-drift."
)


def python_files(installation: Installation, state: State | None) -> Iterator[str]:
    """Every Python file of the package that the applied patchset did not add, listed by RECORD or not."""
    added = {entry.path for entry in state.files if entry.added} if state else set()
    for folder, folders, names in os.walk(installation.root):
        folders[:] = [name for name in folders if name != "__pycache__"]
        inside = os.path.relpath(folder, installation.folder).replace(os.sep, "/")
        yield from (path for name in names if name.endswith(".py") and (path := f"{inside}/{name}") not in added)


def watch(
    sentinels: Sentinels | None, read: Read, paths: Iterable[str], *, allow_drift: bool = False
) -> tuple[Diagnostic, ...]:
    """A diagnostic for every use without a verdict, and for every use of a name that only the patchset should bring.

    The former are errors, or with ``allow_drift`` warnings; the latter are errors always.
    """
    if sentinels is None:
        return ()
    sites = survey(sentinels, read, paths)
    severity = Severity.WARNING if allow_drift else Severity.ERROR
    unknown = [_unknown(item, severity) for item in alarms(sentinels, sites)]
    return (*unknown, *(_foreign(item) for item in foreign(sentinels, sites)))


def _unknown(alarm: Alarm, severity: Severity) -> Diagnostic:
    site = alarm.site
    if not site.name:
        summary = f"{site.path} holds a watched name, and is not Python that this interpreter can parse"
        code = StepOutcome.NOT_ROUNDTRIPPABLE.value
    else:
        summary = f"{site.path}:{site.line}: {_place(site)} asks for {site.name}, and no verdict says what it shall do"
        code = UNKNOWN
    return Diagnostic(code, severity, summary, alarm.reason, _REMEDY, path=site.path, line=site.line)


def _foreign(site: Site) -> Diagnostic:
    summary = f"{site.path}:{site.line}: {_place(site)} knows {site.name}, which only this patchset should bring"
    return Diagnostic(StepOutcome.HALF_UPSTREAMED.value, Severity.ERROR, summary, path=site.path, line=site.line)


def _place(site: Site) -> str:
    use = site.use if len(site.use) <= _LONGEST else f"{site.use[:_LONGEST]}…"
    return f"`{use}` in {site.scope or 'the module'}"


_LONGEST = 160  # characters of a use that is shown
