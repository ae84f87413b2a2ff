"""``status`` and ``doctor``: what is there, from digests and metadata alone. Never imports libcst, torch or sglang."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache

from .. import installation as installations
from .. import resources
from ..errors import Locked
from ..installation import Installation
from ..model import (
    Diagnostic,
    ExitCode,
    FileStatus,
    InstallationStatus,
    Report,
    Severity,
)
from ..pristine import Finding, Pristine, explain, file_state, foreign_files, installation_status
from ..store import State
from .drift import Drift, diagnose, reinstall
from .session import Session
from .standing import Build, judge_release
from .surroundings import surroundings, through_links
from .undisturbed import PATIENCE, undisturbed

# Of files that nothing was applied to, only these are worth a word.
_UNASKED = (FileStatus.FOREIGN, FileStatus.MISSING)
_BAD = {
    InstallationStatus.OUTDATED: "Run `ddtree-patch apply`: it computes the new patch from pristine bytes.",
    InstallationStatus.INTERRUPTED: "Run `ddtree-patch apply` or `ddtree-patch revert`: either recovers first.",
}


def status(session: Session, *, check: bool) -> Report:
    """What is there now. ``check`` gives exit code 3 unless the patch is applied, whole and current.

    While another process is in the middle of a change the answer is ``busy``: neither half of it is an alarm.
    """
    try:
        return undisturbed(session, lambda: _status(session, check=check), patience=PATIENCE)
    except Locked as error:
        code = ExitCode.LOCKED if check else ExitCode.OK
        said = Diagnostic("busy", Severity.WARNING, error.summary, remedy=error.remedy)
        return session.report("status", code, str(InstallationStatus.BUSY), diagnostics=(said,))


def _status(session: Session, *, check: bool) -> Report:
    installation, store, state = session.installation, session.store, session.state()
    watched = () if state else files_to_watch(installation)
    kind, findings = installation_status(installation, store, state, session.identity.digest, watched)
    drift = None if kind is InstallationStatus.INTERRUPTED else diagnose(session, state, findings)
    shown = [item for item in findings if state or (item.status in _UNASKED and item.pristine_sha256)]
    applied = kind is InstallationStatus.APPLIED and state is not None
    good = applied and state is not None and state.whole and drift is None
    return session.report(
        "status",
        ExitCode.CHANGES if check and not good else ExitCode.OK,
        str(InstallationStatus.DRIFTED if drift and kind in _STANDING else kind),
        steps=state.steps if applied and state else (),
        files=tuple(file_state(item, state) for item in shown),
        diagnostics=tuple(_remarks(session, kind, state, shown, drift)),
        extra={"applied": asdict(state.patchset) if state else None},
    )


# What an installation is not any more when anything of it has drifted.
_STANDING = (InstallationStatus.CLEAN, InstallationStatus.APPLIED)


def _remarks(
    session: Session, kind: InstallationStatus, state: State | None, shown: Sequence[Finding], drift: Drift | None
) -> Iterator[Diagnostic]:
    if kind in _BAD:
        where = session.installation.root
        yield Diagnostic(str(kind), Severity.WARNING, f"{where} is {kind}", remedy=_BAD[kind])
    if drift:
        yield drift.diagnostic()
    yield from partial(state)
    yield from _left_behind(kind, shown, drift)
    for item in shown if kind is not InstallationStatus.INTERRUPTED else ():  # half done is the whole reason
        if item.status not in (FileStatus.PATCHED, FileStatus.PRISTINE):
            said = explain(item, drift.remedy if drift else "", patched=state is not None)
            yield said if state else through_links(said, session.installation)


def _left_behind(kind: InstallationStatus, shown: Sequence[Finding], drift: Drift | None) -> Iterator[Diagnostic]:
    """Added files that are still there after a reinstallation, which knows of those in RECORD alone."""
    if drift and kind is InstallationStatus.WIPED:
        for item in shown:
            if item.status is FileStatus.PATCHED:
                summary = f"{item.path} was added by the patch, and the reinstallation left it behind"
                detail = "`ddtree-patch revert` removes it, too."
                code = str(item.status)
                yield Diagnostic(code, Severity.WARNING, summary, detail, remedy=drift.remedy, path=item.path)


def partial(state: State | None) -> Iterator[Diagnostic]:
    """A warning where only some of the steps are applied."""
    if state is not None and not state.whole:
        steps = ", ".join(step.id for step in state.steps)
        remedy = "Run `ddtree-patch apply` without --step and --through."
        yield Diagnostic("partial", Severity.WARNING, f"only a part of the steps is applied: {steps}", remedy=remedy)


def doctor(session: Session) -> Report:
    """Describe the installation and everything that would make patching it unsafe."""
    return undisturbed(session, lambda: _doctor(session), patience=PATIENCE)


def _doctor(session: Session) -> Report:
    installation, options = session.installation, session.options
    refused = installations.refusals(
        installation,
        allow_editable=options.allow_editable,
        break_system=options.break_system,
        allow_shared=options.allow_shared,
    )
    diagnostics = [item for error in refused for item in error.diagnostics()]
    state = session.state()
    ours = {entry.path for entry in state.files} if state else set()
    options.say("comparing every file with RECORD")
    foreign = foreign_files(installation, {*ours, installation.record_path})
    drift = _drift(session, state, foreign)
    diagnostics += [drift.diagnostic()] if drift else []
    remedy = drift.remedy if drift else reinstall(installation)
    edited = [_foreign(path, digest, remedy) for path, digest in sorted(foreign.items())[:20]]
    diagnostics += [through_links(item, installation) for item in edited]
    if len(foreign) > 20:
        diagnostics.append(
            Diagnostic("foreign", Severity.WARNING, f"… and {len(foreign) - 20} more files differ from RECORD")
        )
    diagnostics += _release(session, foreign)
    if installation.is_managed and options.break_system:
        said = "this is the system's Python (PEP 668): its package manager may put these files back at any time"
        diagnostics.append(Diagnostic("environment_refused", Severity.NOTE, said))
    diagnostics += surroundings(installation, session.store, files_to_watch(installation))
    diagnostics += _tiers(session)
    if session.store.journal() is not None:
        remedy = _BAD[InstallationStatus.INTERRUPTED]
        diagnostics.append(Diagnostic("interrupted", Severity.WARNING, "an earlier run ended half way", remedy=remedy))
    compared = len([row for row in installation.record.rows.values() if row.sha256]) if installation.record else 0
    extra = {
        "dist_info": installation.dist_info,
        "state_dir": str(session.store.folder),
        "applied": state is not None,
        "recorded_files": compared,
        "foreign_files": len(foreign),
        "direct_url": installation.direct_url.get("url", ""),
    }
    code = ExitCode.ENVIRONMENT_REFUSED if any(item.severity is Severity.ERROR for item in diagnostics) else ExitCode.OK
    return session.report("doctor", code, diagnostics=tuple(diagnostics), extra=extra)


@cache
def watched_paths(distribution: str) -> tuple[str, ...]:
    """The files that the bundled snapshots watch; empty without a snapshot of that distribution."""
    for path in sorted(resources.folder("snapshots").glob(f"{distribution}-*.json"), reverse=True):
        return tuple(sorted(json.loads(path.read_bytes())["files"]))
    return ()


def files_to_watch(installation: Installation) -> tuple[str, ...]:
    """The files that a snapshot watches; without one, every file of the package that RECORD lists."""
    record, mine = installation.record, f"{installation.package}/"
    recorded = [path for path in record.rows if path.startswith(mine)] if record else []
    return watched_paths(installation.distribution) or tuple(recorded)


def _drift(session: Session, state: State | None, foreign: Mapping[str, str]) -> Drift | None:
    """The cause of what the patch's own files are; where nothing is applied, of what any file of the package is."""
    if session.store.journal() is not None:
        return None
    look = Pristine(session.installation, session.store, state)
    paths = [entry.path for entry in state.files] if state else sorted(foreign)
    return diagnose(session, state, [look.find(path) for path in paths])


def _foreign(path: str, digest: str, remedy: str) -> Diagnostic:
    what = "is not what RECORD says: somebody edited it" if digest else "is in RECORD and was deleted"
    detail = "To build on it as it is: --allow-drift."
    code = "foreign" if digest else "missing"
    return Diagnostic(code, Severity.WARNING, f"{path} {what}", detail, remedy, path=path)


def _release(session: Session, foreign: Mapping[str, str]) -> tuple[Diagnostic, ...]:
    installation = session.installation
    recorded, says = installation.recorded_sha256, session.description
    build = Build(installation.distribution, installation.version, says.supports, recorded, foreign, says.strongest)
    return judge_release(build, Pristine(installation, session.store, session.state()).glance).diagnostics


def _tiers(session: Session) -> Iterator[Diagnostic]:
    """Which verification tiers can run: all but static need torch in the target's interpreter."""
    python = session.installation.interpreter.executable
    command = [python, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"]
    try:
        without = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False).returncode != 0
        why = f"torch is not installed for {python}" if without else ""
    except OSError as error:
        why = f"{python} cannot be run by this user ({error.strerror})"
    if why:
        yield Diagnostic(
            "not_run",
            Severity.NOTE,
            f"{why}: only the static tier will run",
            remedy="Install SGLang's dependencies there, or name an interpreter that has them with --python.",
        )
