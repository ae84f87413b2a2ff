"""``verify --attestation``: the tree held against a statement, without the state folder or the patchset's code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ..attestation import Attestation, load
from ..digest import read_from, sha256
from ..model import CheckOutcome, CheckResult, Diagnostic, ExitCode, FileState, FileStatus, Report, Severity, Tier
from ..pristine import foreign_files
from ..store import State
from .session import Session
from .undisturbed import PATIENCE, undisturbed


def hold(session: Session, file: Path) -> Report:
    """Compare digests, base release and patchset; each mismatch is named with both of its sides. Exit code 5, or 0."""
    attested = load(file)
    return undisturbed(session, lambda: _hold(session, attested), patience=PATIENCE)


def _hold(session: Session, attested: Attestation) -> Report:
    session.options.say("holding the tree against the attestation")
    state = session.state()
    files = _files(session, attested)
    checks = (
        _check("attested-base", lambda: _base(session, attested)),
        _check("attested-patchset", lambda: _patchset(session, attested, state)),
        _check("attested-files", lambda: _differences(session, attested, files, state)),
        _recorded(session, "attested-pristine", lambda: _pristine(session, attested)),
        _recorded(session, "nothing-else-changed", lambda: _others(session, attested)),
    )
    failed = [item for item in checks if item.outcome is CheckOutcome.FAILED]
    return session.report(
        "verify",
        ExitCode.VERIFICATION_FAILED if failed else ExitCode.OK,
        files=files,
        checks=checks,
        diagnostics=tuple(_told(item, attested) for item in failed),
    )


def _files(session: Session, attested: Attestation) -> tuple[FileState, ...]:
    current = {path: _digest(session, path) for path in attested.subjects}
    return tuple(
        FileState(
            path=path,
            status=_status(current[path], digest, attested.pristine.get(path, "")),
            added=path not in attested.pristine,
            pristine_sha256=attested.pristine.get(path, ""),
            desired_sha256=digest,
            current_sha256=current[path],
        )
        for path, digest in sorted(attested.subjects.items())
    )


def _status(current: str, wanted: str, pristine: str) -> FileStatus:
    if not current:
        return FileStatus.MISSING
    if current == wanted:
        return FileStatus.PATCHED
    return FileStatus.WIPED if current == pristine else FileStatus.FOREIGN


def _digest(session: Session, path: str) -> str:
    """Of a file on disk; empty where there is none."""
    try:
        return sha256(read_from(session.installation.folder)(path))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return ""


# --- the checks --------------------------------------------------------------------------------------------------


def _base(session: Session, attested: Attestation) -> Iterator[str]:
    here = session.installation
    if (here.distribution, here.version) != (attested.distribution, attested.version):
        installed = f"{here.distribution} {here.version or '(version unknown)'}"
        yield f"installed is {installed}, attested {attested.distribution} {attested.version}"


def _patchset(session: Session, attested: Attestation, state: State | None) -> Iterator[str]:
    wanted = attested.patchset
    for where, found in (("at hand", session.identity), ("applied here", state.patchset if state else wanted)):
        if (found.id, found.digest) != (wanted.id, wanted.digest):
            yield (
                f"{where} is {found.id} {found.version} ({_short(found.digest)}), "
                f"attested {wanted.id} {wanted.version} ({_short(wanted.digest)})"
            )


def _differences(
    session: Session, attested: Attestation, files: tuple[FileState, ...], state: State | None
) -> Iterator[str]:
    for item in files:
        if item.current_sha256 != item.desired_sha256:
            yield _sides(item.path, item.current_sha256, item.desired_sha256)
    for path, digest in sorted(attested.drift.items()):
        if path not in attested.subjects and (current := _digest(session, path)) != digest:
            yield _sides(path, current, digest)
    for entry in state.files if state else ():
        if entry.path not in attested.subjects:
            yield f"{entry.path}: patched here, not attested"


def _pristine(session: Session, attested: Attestation) -> Iterator[str]:
    """RECORD vouches for the bytes that the changed files had in the attested release."""
    for path, digest in sorted(attested.pristine.items()):
        recorded = session.installation.recorded_sha256(path)
        if path not in attested.drift and recorded != digest:
            said = f"{_short(recorded)} by RECORD" if recorded else "not in RECORD"
            yield f"{path}: before the patch {said}, attested {_short(digest)}"


def _others(session: Session, attested: Attestation) -> Iterator[str]:
    installation = session.installation
    known = {*attested.subjects, installation.record_path}
    for path, digest in sorted(foreign_files(installation, known).items()):
        if attested.drift.get(path) != digest:
            yield f"{path}: {'not what RECORD says' if digest else 'missing'}, and not attested"


def _sides(path: str, current: str, wanted: str) -> str:
    on_disk = _short(current) if current else "missing"
    return f"{path}: on disk {on_disk}, attested {_short(wanted) if wanted else 'missing'}"


def _short(digest: str) -> str:
    return f"{digest[:12]}…"


def _check(name: str, find: Callable[[], Iterator[str]]) -> CheckResult:
    problems = list(find())
    outcome = CheckOutcome.FAILED if problems else CheckOutcome.PASSED
    return CheckResult(Tier.STATIC, name, outcome, "\n".join(problems))


def _recorded(session: Session, name: str, find: Callable[[], Iterator[str]]) -> CheckResult:
    """A check that asks RECORD, where there is one."""
    if session.installation.record is None:
        return CheckResult(Tier.STATIC, name, CheckOutcome.NOT_RUN, "the installation has no RECORD")
    return _check(name, find)


def _told(check: CheckResult, attested: Attestation) -> Diagnostic:
    summaries = {
        "attested-base": "another release was attested than is installed",
        "attested-patchset": "another patchset was attested",
        "attested-files": "the files are not those that were attested",
        "attested-pristine": "the release that was attested had other bytes than RECORD says",
        "nothing-else-changed": "files beside the patch were changed",
    }
    remedies = {
        "attested-base": f"Install {attested.distribution}=={attested.version} and apply; or {_ANEW}",
        "attested-patchset": f"Use the version of the tool, or the --patchset, that was attested; or {_ANEW}",
        "nothing-else-changed": "Reinstall SGLang (pip install --force-reinstall --no-deps) and apply.",
    }
    remedy = remedies.get(check.id, f"`ddtree-patch status` says what is here and what to do about it; or {_ANEW}")
    return Diagnostic("verification_failed", Severity.ERROR, summaries[check.id], check.detail, remedy)


_ANEW = "attest what is here, where that is right: `ddtree-patch status --attest FILE`."
