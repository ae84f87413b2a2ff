"""``status`` and ``doctor``: what is there, from digests and metadata alone. Never imports libcst, torch or sglang."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache

from .. import installation as installations
from .. import resources
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
from .session import Session
from .standing import Build, judge_release

# Of files that nothing was applied to, only these are worth a word.
_UNASKED = (FileStatus.FOREIGN, FileStatus.MISSING)
_BAD = {
    InstallationStatus.OUTDATED: "Run `ddtree-patch apply`: it computes the new patch from pristine bytes.",
    InstallationStatus.WIPED: "SGLang was reinstalled over the patch: run `ddtree-patch apply` again.",
    InstallationStatus.DRIFTED: "See the files below, then `ddtree-patch apply` or `revert`.",
    InstallationStatus.INTERRUPTED: "Run `ddtree-patch apply` or `ddtree-patch revert`: either recovers first.",
}


def status(session: Session, *, check: bool) -> Report:
    """What is there now. ``check`` gives exit code 3 unless the patch is applied, whole and current."""
    installation, store, state = session.installation, session.store, session.state()
    watched = () if state else watched_paths(installation.distribution)
    kind, findings = installation_status(installation, store, state, session.identity.digest, watched)
    shown = [item for item in findings if state or (item.status in _UNASKED and item.pristine_sha256)]
    applied = kind is InstallationStatus.APPLIED and state is not None
    good = applied and state is not None and state.whole
    return session.report(
        "status",
        ExitCode.CHANGES if check and not good else ExitCode.OK,
        str(kind),
        steps=state.steps if applied and state else (),
        files=tuple(file_state(item, state) for item in shown),
        diagnostics=tuple(_remarks(session, kind, state, shown)),
        extra={"applied": asdict(state.patchset) if state else None},
    )


def _remarks(
    session: Session, kind: InstallationStatus, state: State | None, shown: Sequence[Finding]
) -> Iterator[Diagnostic]:
    if kind in _BAD:
        where = session.installation.root
        yield Diagnostic(str(kind), Severity.WARNING, f"{where} is {kind}", remedy=_BAD[kind])
    yield from partial(state)
    for item in shown if kind is not InstallationStatus.INTERRUPTED else ():  # half done is the whole reason
        if item.status not in (FileStatus.PATCHED, FileStatus.PRISTINE):
            yield explain(item, patched=state is not None)


def partial(state: State | None) -> Iterator[Diagnostic]:
    """A warning where only some of the steps are applied."""
    if state is not None and not state.whole:
        steps = ", ".join(step.id for step in state.steps)
        remedy = "Run `ddtree-patch apply` without --step and --through."
        yield Diagnostic("partial", Severity.WARNING, f"only a part of the steps is applied: {steps}", remedy=remedy)


def doctor(session: Session) -> Report:
    """Describe the installation and everything that would make patching it unsafe."""
    installation, options = session.installation, session.options
    refused = installations.refusals(
        installation, allow_editable=options.allow_editable, break_system=options.break_system
    )
    diagnostics = [item for error in refused for item in error.diagnostics()]
    state = session.state()
    ours = {entry.path for entry in state.files} if state else set()
    options.say("comparing every file with RECORD")
    foreign = foreign_files(installation, {*ours, installation.record_path})
    diagnostics += [_foreign(path, digest) for path, digest in sorted(foreign.items())[:20]]
    if len(foreign) > 20:
        diagnostics.append(
            Diagnostic("foreign", Severity.WARNING, f"… and {len(foreign) - 20} more files differ from RECORD")
        )
    diagnostics += _release(session, foreign)
    diagnostics += _links(session)
    diagnostics += _permissions(session)
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


def _foreign(path: str, digest: str) -> Diagnostic:
    what = "is not what RECORD says: somebody edited it" if digest else "is in RECORD and was deleted"
    remedy = "Reinstall SGLang (pip install --force-reinstall --no-deps), or apply with --allow-drift."
    return Diagnostic("foreign" if digest else "missing", Severity.WARNING, f"{path} {what}", remedy=remedy, path=path)


def _release(session: Session, foreign: Mapping[str, str]) -> tuple[Diagnostic, ...]:
    installation = session.installation
    recorded, supports = installation.recorded_sha256, session.description.supports
    build = Build(installation.distribution, installation.version, supports, recorded, foreign)
    return judge_release(build, Pristine(installation, session.store, session.state()).glance).diagnostics


def _links(session: Session) -> Iterator[Diagnostic]:
    """Targets that share their bytes with other installations (uv and conda hard-link files to a cache)."""
    folder = session.installation.folder
    linked = []
    for path in watched_paths(session.installation.distribution):
        target = folder / path
        if target.is_symlink() or (target.exists() and os.path.realpath(target) != str(target)):
            remedy = "Give this environment its own copy of the package (uv: --link-mode copy)."
            yield Diagnostic("linked", Severity.ERROR, f"{path} is a symbolic link", remedy=remedy, path=path)
        elif target.exists() and target.stat().st_nlink > 1:
            linked.append(path)
    if linked:
        detail = "They are replaced, never written in place: the other names keep their bytes."
        yield Diagnostic("linked", Severity.NOTE, f"{len(linked)} of the files to change have other hard links", detail)


def _permissions(session: Session) -> Iterator[Diagnostic]:
    folder = session.installation.root
    if not os.access(folder, os.W_OK):
        yield Diagnostic(
            "environment_refused",
            Severity.ERROR,
            f"{folder} is not writable for this user",
            remedy="Run as the owner of the installation.",
        )


def _tiers(session: Session) -> Iterator[Diagnostic]:
    """Which verification tiers can run: all but static need torch in the target's interpreter."""
    python = session.installation.interpreter.executable
    command = [python, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"]
    if subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False).returncode:
        yield Diagnostic(
            "not_run",
            Severity.NOTE,
            f"torch is not installed for {python}: only the static tier will run",
            remedy="Install SGLang's dependencies there, or name an interpreter that has them with --python.",
        )
