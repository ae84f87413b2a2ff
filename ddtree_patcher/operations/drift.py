"""Why an installation is no longer as it was applied, or installed: one cause by name, and the one way out.

Told from digests, RECORD and metadata alone, so that ``status`` can say it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .. import patchset as patchsets
from ..digest import sha256
from ..installation import Installation
from ..model import Diagnostic, DriftCause, FileStatus, Severity
from ..pristine import Finding, Pristine
from ..store import State
from .session import Session
from .surroundings import cure, in_the_cache


@dataclass(frozen=True, slots=True)
class Drift:
    """A cause, what it means here, and the one remedy."""

    cause: DriftCause
    summary: str
    remedy: str
    detail: str = ""

    def diagnostic(self, severity: Severity = Severity.WARNING) -> Diagnostic:
        return Diagnostic(self.cause.value, severity, self.summary, self.detail, self.remedy)


_APPLY = "Run `ddtree-patch apply`."
_REVERT = "Run `ddtree-patch revert`."
_DISCARD = "Keep that edit elsewhere, then run `ddtree-patch revert --discard-edits` and apply again."


def diagnose(session: Session, state: State | None, findings: Sequence[Finding]) -> Drift | None:
    """The cause of what was found in the files of the state, or (without one) in those that are watched."""
    return _of_unpatched(session, findings) if state is None else _of_patched(session, state, findings)


def reinstall(installation: Installation) -> str:
    """How to have every file of the release back."""
    what = installation.distribution
    if installation.version:
        what = f"{what}=={installation.version}"
    return f"Reinstall it (pip install --force-reinstall --no-deps {what})."


def fetch(installation: Installation) -> str:
    """How to come by the wheel of the release."""
    return f"pip download --no-deps {installation.distribution}=={installation.version}"


def from_wheel(installation: Installation) -> str:
    return f"Fetch its wheel ({fetch(installation)}) and run `ddtree-patch revert --from-wheel FILE`."


def rewritten_rows(installation: Installation, state: State) -> tuple[str, ...]:
    """Files of which RECORD said something else, or something at all, when they were patched."""
    if installation.record is None or state.version != installation.version:
        return ()
    rows = {entry.path: installation.recorded_sha256(entry.path) for entry in state.files}
    return tuple(
        entry.path
        for entry in state.files
        if entry.path not in state.drift and rows[entry.path] != (entry.pristine_sha256 or entry.patched_sha256)
        if rows[entry.path] in ("", entry.patched_sha256)
    )


def _of_patched(session: Session, state: State, findings: Sequence[Finding]) -> Drift | None:
    installation = session.installation
    foreign = [item for item in findings if item.status is FileStatus.FOREIGN]
    if foreign:
        return _foreign(session, state, findings, foreign)
    gone = [item for item in findings if item.status is FileStatus.MISSING and item.pristine_sha256]
    if gone:
        known = all(item.pristine is not None for item in gone)
        return _deleted(gone, _REVERT if known else f"{reinstall(installation)} Then run `ddtree-patch apply`.")
    added = {entry.path for entry in state.files if entry.added}
    patched = {item.path for item in findings if item.status is FileStatus.PATCHED}
    wiped = [item for item in findings if item.path not in patched]
    if not wiped:
        return _rewritten(installation, state)
    if patched <= added and len(wiped) > len(added - patched):
        return _replaced(session, state)
    if added.issuperset(item.path for item in wiped):
        return _deleted(wiped, _APPLY)
    names = ", ".join(item.path for item in wiped)
    summary = f"a part of the patch was taken out: pristine again {'are' if len(wiped) > 1 else 'is'} {names}"
    return Drift(DriftCause.HALF_RESTORED, summary, _APPLY)


def _foreign(session: Session, state: State, findings: Sequence[Finding], foreign: Sequence[Finding]) -> Drift:
    installation = session.installation
    look = Pristine(installation, session.store, state)
    unvouched = [item for item in foreign if (entry := state.entry(item.path)) and not look.vouched(entry)]
    if not unvouched:
        return _edited(installation, foreign, _DISCARD)
    if _is_elsewhere(session, state):
        summary = f"the state folder is that of {state.root} ({installation.distribution} {state.version})"
        detail = f"What it remembers is not believed: RECORD denies it for {unvouched[0].path}."
        return Drift(DriftCause.OTHER_ENVIRONMENT, summary, from_wheel(installation), detail)
    return _edited(installation, foreign, f"{reinstall(installation)} Then run `ddtree-patch apply`.")


def _replaced(session: Session, state: State) -> Drift:
    """Every file of the release's own is as RECORD has it."""
    installation = session.installation
    what = f"{installation.distribution} {installation.version}"
    if _is_elsewhere(session, state):
        summary = f"the state folder is that of {state.root}, and the patch is not in {installation.root}"
        return Drift(DriftCause.OTHER_ENVIRONMENT, summary, _APPLY)
    if state.version == installation.version:
        return Drift(DriftCause.REINSTALLED, f"{what} was reinstalled over the patch", _APPLY)
    cause = _direction(state.version, installation.version)
    summary = f"{installation.distribution} was {cause} from {state.version} to {installation.version} over the patch"
    if _supports(session.description.supports, installation.version):
        return Drift(cause, summary, _APPLY)
    detail = f"This patchset is for {session.description.supports}; what it had added is taken out by a revert."
    return Drift(cause, summary, _REVERT, detail)


def _rewritten(installation: Installation, state: State) -> Drift | None:
    rows = rewritten_rows(installation, state)
    if not rows:
        return None
    summary = f"RECORD was rewritten: it no longer says what is pristine of {', '.join(rows)}"
    return Drift(DriftCause.RECORD_REWRITTEN, summary, _APPLY, "The files are as they were applied.")


def _of_unpatched(session: Session, findings: Sequence[Finding]) -> Drift | None:
    installation = session.installation
    shipped = [item for item in findings if item.pristine_sha256]
    foreign = [item for item in shipped if item.status is FileStatus.FOREIGN]
    gone = [item for item in shipped if item.status is FileStatus.MISSING]
    if not foreign and not gone:
        return None
    if foreign and (ours := _left_behind(session)):
        summary = f"it is patched, and the state folder {session.store.folder} is gone"
        detail = f"RECORD lists files of the patchset: {', '.join(ours)}."
        return Drift(DriftCause.STATE_LOST, summary, from_wheel(installation), detail)
    if foreign:
        linked = in_the_cache(installation, [item.path for item in foreign])
        return _edited(installation, foreign, cure(installation) if linked else reinstall(installation))
    return _deleted(gone, reinstall(installation))


def _edited(installation: Installation, foreign: Sequence[Finding], remedy: str) -> Drift:
    names = ", ".join(item.path for item in foreign)
    traces = [trace for item in foreign for trace in _traces(installation, item)]
    if traces:
        return Drift(DriftCause.EDITED_BY_TOOL, f"another tool edited {names}", remedy, "\n".join(traces))
    return Drift(DriftCause.EDITED, f"somebody edited {names}", remedy)


def _deleted(gone: Sequence[Finding], remedy: str) -> Drift:
    return Drift(DriftCause.DELETED, f"somebody deleted {', '.join(item.path for item in gone)}", remedy)


_LEFTOVERS = (".orig", ".rej", ".bak", ".old", ".patched", "~")
_MARKER = re.compile(
    rb"(?i)^\s*#.*(\b(patched|injected|instrumented|overlaid) (by|with)\b|\b(begin|end)\b.{0,40}\bpatch)|^[<>]{7} "
)


def _traces(installation: Installation, item: Finding) -> Iterator[str]:
    """What another patcher left behind: a backup beside the file, its markers, its own claim to the file."""
    target = installation.folder / item.path
    for ending in _LEFTOVERS:
        if (target.parent / f"{target.name}{ending}").exists():
            yield f"{item.path}{ending} lies beside it."
    beneath = item.pristine if item.pristine and sha256(item.pristine) == item.pristine_sha256 else b""
    known = set(beneath.splitlines())
    for number, line in enumerate(target.read_bytes().splitlines(), 1):
        if _MARKER.search(line) and line not in known:
            yield f"{item.path}:{number}: {line.strip().decode('utf-8', 'backslashreplace')[:120]}"
    for record in sorted(installation.folder.glob("*.dist-info/RECORD")):
        if record.parent.name != installation.dist_info and f"\n{item.path},".encode() in b"\n" + record.read_bytes():
            yield f"{record.parent.name} lists {item.path} as its own."


def _left_behind(session: Session) -> tuple[str, ...]:
    """Files that the patchset brings as they lie in its folder, by RECORD: nobody but it puts those there."""
    record = session.installation.record
    mine = patchsets.contents(patchsets.locate(session.options.patchset))
    return tuple(sorted(path for path, row in record.rows.items() if row.sha256 in mine)) if record else ()


def _is_elsewhere(session: Session, state: State) -> bool:
    return bool(state.root) and state.root != str(session.installation.root)


def _direction(old: str, new: str) -> DriftCause:
    from packaging.version import InvalidVersion, Version  # late: of use in this case alone

    try:
        return DriftCause.DOWNGRADED if Version(new) < Version(old) else DriftCause.UPGRADED
    except InvalidVersion:
        return DriftCause.UPGRADED


def _supports(specifier: str, version: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(specifier).contains(version, prereleases=True)
    except InvalidSpecifier:
        return True
