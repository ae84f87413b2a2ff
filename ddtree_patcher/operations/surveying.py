"""``matrix``: what the patchset would do to many releases, from their wheels, with nothing installed or unpacked."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from .. import wheels
from ..digest import sha256
from ..errors import EnvironmentRefused, PatchError, PatchsetError
from ..model import (
    Capability,
    CheckOutcome,
    CheckResult,
    Diagnostic,
    ExitCode,
    ReleaseResult,
    ReleaseVerdict,
    Report,
    Severity,
    StepOutcome,
    Tier,
)
from ..patchset import Patchset
from ..planner import draft
from ..snapshot import bundled
from ..tree import Tree, forget_parsed
from ..verification.static import Subject, static_checks
from .alarms import watch
from .proved_wheel import ProvedWheel, open_wheel
from .session import Session
from .standing import Build, judge_release
from .verifying import judge
from .versions import releases_meant


def survey(session: Session, words: Sequence[str], folder: Path, capabilities: tuple[Capability, ...] = ()) -> Report:
    """Plan and statically verify every release that is meant (default: all that have a snapshot).

    ``folder`` is the cache of wheels. The exit code is the highest of a row's. Raises ``UsageError`` for what is no
    version; a release whose wheel cannot be had is a row like any other.
    """
    patchset = session.loaded.patchset
    known = [item.version for item in bundled() if item.distribution == patchset.distribution]
    versions = releases_meant(words, known)
    rows = []
    for place, version in enumerate(versions, 1):
        session.options.say(f"{patchset.distribution} {version} ({place} of {len(versions)})")
        rows.append(_row(session, patchset, version, folder))
        forget_parsed()
    code = max((row.verdict.exit_code for row in rows), default=ExitCode.OK)
    return Report(
        command="matrix",
        exit_code=code,
        outcome=code.symbol,
        patchset=session.identity,
        checks=tuple(check for row in rows for check in _summed_up(row)),
        diagnostics=tuple(problem for row in rows for problem in _problems(row)),
        releases=tuple(rows),
        capabilities=capabilities,
    )


def _row(session: Session, patchset: Patchset, version: str, folder: Path) -> ReleaseResult:
    """One release. Whatever is wrong with it or with its wheel is its verdict, and others go on."""
    try:
        path = wheels.fetch(patchset.distribution, version, folder, session.options.say)
    except EnvironmentRefused as error:
        return ReleaseResult(version, ReleaseVerdict.REFUSED, diagnostics=error.diagnostics())
    row = ReleaseResult(version, ReleaseVerdict.REFUSED, path.name, sha256(path.read_bytes()))
    try:
        return _judged(row, patchset, open_wheel(path, version))
    except PatchsetError as error:  # a step that is at fault on this release may be right on others
        return replace(row, verdict=ReleaseVerdict.CONFLICT, diagnostics=error.diagnostics())
    except PatchError as error:
        return replace(row, diagnostics=error.diagnostics())


def _judged(row: ReleaseResult, patchset: Patchset, wheel: ProvedWheel) -> ReleaseResult:
    pristine = Tree(wheel.read)
    for item in patchset.preconditions:
        if not item.shape.holds(pristine):
            raise EnvironmentRefused(item.summary, remedy=item.remedy)
    made = draft(patchset, pristine)
    about = (patchset.distribution, row.version, patchset.supports, wheel.recorded)
    standing = judge_release(Build(*about, strongest=patchset.strongest), wheel.read)
    diagnostics = [*standing.diagnostics, *made.diagnostics]
    if not made.upstream_has_all:
        diagnostics += _of_names(patchset, wheel, {item.path for item in diagnostics if item.code == _HALF})
    row = replace(row, standing=standing.as_json(), steps=made.steps, diagnostics=tuple(diagnostics))
    if any(item.severity is Severity.ERROR for item in diagnostics):
        return replace(row, verdict=ReleaseVerdict.CONFLICT)
    paths = tuple(item.path for item in made.files)
    checks = static_checks(Subject(patchset, made.steps, made.tree, pristine, paths, wheel.folders))
    failed = judge(checks, None, diagnostics) is not ExitCode.OK
    pending = any(step.outcome is StepOutcome.PENDING for step in made.steps)
    good = ReleaseVerdict.APPLIES if pending else ReleaseVerdict.NOTHING_TO_DO
    verdict = ReleaseVerdict.VERIFICATION_FAILED if failed else good
    return replace(row, verdict=verdict, checks=checks, diagnostics=tuple(diagnostics))


_HALF = StepOutcome.HALF_UPSTREAMED.value


def _of_names(patchset: Patchset, wheel: ProvedWheel, told: Collection[str]) -> list[Diagnostic]:
    """Uses of watched names without a verdict, and of our own names in files of which nobody has told that yet."""
    python = sorted(name for name in wheel.source.names if name.startswith(f"{patchset.package}/"))
    found = watch(patchset.sentinels, wheel.read, [name for name in python if name.endswith(".py")])
    return [item for item in found if item.code != _HALF or item.path not in told]


def _summed_up(row: ReleaseResult) -> Iterator[CheckResult]:
    """Two checks a release, as CI systems count: can it be planned, and does the static tier pass on the plan?"""
    reasons = "\n".join(f"{item.summary} {item.detail}".strip() for item in row.diagnostics)
    planned = row.verdict not in (ReleaseVerdict.REFUSED, ReleaseVerdict.CONFLICT)
    outcome = CheckOutcome.PASSED if planned else CheckOutcome.FAILED
    yield CheckResult(Tier.STATIC, f"{row.version}:plan", outcome, "" if planned else reasons)
    seconds = sum(check.seconds for check in row.checks)
    if planned:
        failed = row.verdict is ReleaseVerdict.VERIFICATION_FAILED
        outcome = CheckOutcome.FAILED if failed else CheckOutcome.PASSED
        yield CheckResult(Tier.STATIC, f"{row.version}:static", outcome, reasons if failed else "", seconds)
    else:
        yield CheckResult(Tier.STATIC, f"{row.version}:static", CheckOutcome.NOT_RUN, "there is no plan to check")


def _problems(row: ReleaseResult) -> Iterator[Diagnostic]:
    """The errors of a row, each with the release that it is about."""
    for item in row.diagnostics:
        if item.severity is Severity.ERROR:
            yield replace(item, summary=f"{row.version}: {item.summary}")
