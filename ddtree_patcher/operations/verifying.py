"""``verify``: is what is on disk what was applied, and does it work?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..digest import read_from
from ..errors import Interrupted
from ..model import (
    CheckOutcome,
    CheckResult,
    Diagnostic,
    ExitCode,
    FileStatus,
    Report,
    Severity,
    StepOutcome,
    StepResult,
    Tier,
)
from ..pristine import Finding, Pristine, explain, file_state
from ..signals import Stopped, signals_as_exceptions
from ..store import State
from ..tree import Tree
from ..verification.static import Subject, folders_of, nothing_else_changed, static_checks
from ..verification.tiers import Target, running_checks, unmet_requirement
from .drift import Drift, diagnose, rewritten_rows
from .inspecting import files_to_watch, partial
from .session import Session
from .standing import build_of, judge_release, proved_by
from .undisturbed import PATIENCE, undisturbed


def verify(session: Session, upto: Tier, required: Tier | None, e2e_arguments: Sequence[str] = ()) -> Report:
    """Run the tiers on what is there. Never writes. Raises :class:`Interrupted` on SIGINT or SIGTERM.

    `e2e_arguments` are handed to the patchset's program of that tier.
    """
    try:
        with signals_as_exceptions():
            return undisturbed(session, lambda: _verify(session, upto, required, e2e_arguments), patience=PATIENCE)
    except Stopped as signal:
        raise Interrupted(f"stopped by {signal}; nothing was changed", remedy="Run it again.") from None


def _verify(session: Session, upto: Tier, required: Tier | None, e2e_arguments: Sequence[str]) -> Report:
    state = session.state()
    if session.store.journal() is not None:
        return _not_applied(
            session,
            "interrupted",
            "an earlier run ended half way",
            "Run `ddtree-patch apply` or `revert`: either recovers first.",
        )
    look = Pristine(session.installation, session.store, state)
    paths = [entry.path for entry in state.files] if state else files_to_watch(session.installation)
    findings = [look.find(path) for path in paths]
    drift = diagnose(session, state, findings)
    if state is None:
        return _drifted(session, drift) if drift else _not_applied(session, "clean", *_CLEAN)
    session.refuse_other_patchset(state)
    bad = [item for item in findings if item.status is not FileStatus.PATCHED]
    checks = [_as_applied(bad), _recorded(session, state)]
    if state.patchset.digest != session.identity.digest:
        reason = f"{state.patchset.id} {state.patchset.version} is applied, and this is another version of the patchset"
        checks.append(CheckResult(Tier.STATIC, "patchset-current", CheckOutcome.FAILED, reason))
    checks += static_checks(subject_on_disk(session, state, look))
    checks.append(nothing_else_changed(session.installation, [entry.path for entry in state.files], state.drift))
    upto = max(upto, required or upto, key=lambda tier: tier.rank)
    checks += run_tiers(session, [entry.path for entry in state.files], upto, checks, e2e_arguments)
    diagnostics = [*partial(state), *([drift.diagnostic()] if drift else [])]
    remedy = drift.remedy if drift else ""
    diagnostics += [explain(item, remedy, patched=True) for item in bad]
    # A file that is not as it was applied is the cause; every other check that fails is its consequence.
    told = checks[:1] if bad else checks[1:2] if drift else checks
    code = judge(told, required, diagnostics, remedy)
    patchset = session.loaded.patchset
    build = build_of(session.installation, look, patchset.supports, patchset.strongest)
    release = judge_release(build, look.glance, allow_drift=True)
    diagnostics += [*release.diagnostics, *proved_by(release, checks, patchset.strongest)]
    return session.report(
        "verify",
        code,
        steps=_steps(state, whole=not bad),
        files=tuple(file_state(item, state) for item in findings),
        checks=tuple(checks),
        diagnostics=tuple(diagnostics),
    )


def run_tiers(
    session: Session,
    paths: Sequence[str],
    upto: Tier,
    static: Sequence[CheckResult],
    e2e_arguments: Sequence[str] = (),
) -> tuple[CheckResult, ...]:
    """The tiers beyond ``static``, which ended so, on the tree as it is on disk."""
    loaded, installation = session.loaded, session.installation
    target = Target(
        python=installation.interpreter.executable,
        folder=installation.folder,
        paths=tuple(paths),
        programs={tier: loaded.folder / name for tier, name in loaded.patchset.programs.items()},
        arguments={Tier.E2E: tuple(e2e_arguments)},
    )
    return running_checks(target, upto, static, session.options.say)


_REMEDIES = {
    "nothing-else-changed": "Reinstall SGLang (pip install --force-reinstall --no-deps), "
    "or apply with --allow-drift to accept these files as they are."
}


def judge(
    checks: Sequence[CheckResult], required: Tier | None, diagnostics: list[Diagnostic], remedy: str = ""
) -> ExitCode:
    """The exit code that checks deserve; says in ``diagnostics`` what failed, with the ``remedy`` if it is known."""
    for item in checks:
        if item.outcome is CheckOutcome.FAILED:
            diagnostics.append(
                Diagnostic(
                    "verification_failed",
                    Severity.ERROR,
                    f"{item.tier} check {item.id} failed",
                    detail=item.detail,
                    remedy=remedy or _REMEDIES.get(item.id, "See docs/statuses.md#verification_failed."),
                )
            )
    reason = unmet_requirement(checks, required)
    failed = any(item.outcome is CheckOutcome.FAILED for item in checks)
    if reason and not failed:
        diagnostics.append(
            Diagnostic(
                "not_run",
                Severity.ERROR,
                reason,
                remedy="Install what is missing there, name another interpreter with --python, or drop --require.",
            )
        )
    return ExitCode.VERIFICATION_FAILED if failed or reason else ExitCode.OK


def subject_on_disk(session: Session, state: State, look: Pristine) -> Subject:
    """What static checks look at when the patch is on disk."""
    return Subject(
        patchset=session.loaded.patchset,
        steps=_steps(state, whole=True),
        tree=Tree(read_from(session.installation.folder)),
        pristine=Tree(look.read),
        paths=tuple(entry.path for entry in state.files),
        folders=folders_of(session.installation),
    )


def _as_applied(bad: Sequence[Finding]) -> CheckResult:
    if not bad:
        return CheckResult(Tier.STATIC, "files-as-applied", CheckOutcome.PASSED)
    detail = "; ".join(f"{item.path} is {item.status}" for item in bad)
    return CheckResult(Tier.STATIC, "files-as-applied", CheckOutcome.FAILED, detail)


def _recorded(session: Session, state: State) -> CheckResult:
    """RECORD has the rows of added files, so that uninstalling takes them, and says what is pristine of the others."""
    added = [entry for entry in state.files if entry.added]
    lost = {item.path for item in added if session.installation.recorded_sha256(item.path) != item.patched_sha256}
    lost.update(rewritten_rows(session.installation, state))
    if not lost:
        return CheckResult(Tier.STATIC, "added-files-recorded", CheckOutcome.PASSED)
    detail = f"RECORD was rewritten and no longer has the rows of {', '.join(sorted(lost))}: apply again"
    return CheckResult(Tier.STATIC, "added-files-recorded", CheckOutcome.FAILED, detail)


def _steps(state: State, *, whole: bool) -> tuple[StepResult, ...]:
    """The steps of the state. They are ``already`` there only while every file is as it was applied."""
    gone = {StepOutcome.ALREADY: StepOutcome.PENDING} if not whole else {}
    return tuple(replace(step, outcome=gone.get(step.outcome, step.outcome)) for step in state.steps)


_CLEAN = ("nothing is applied here", "Run `ddtree-patch apply`.")


def _drifted(session: Session, drift: Drift) -> Report:
    """Nothing is applied that the state knows of, and the files are not those of the release either."""
    check = CheckResult(Tier.STATIC, "files-as-applied", CheckOutcome.FAILED, drift.summary)
    said = (drift.diagnostic(Severity.ERROR),)
    return session.report("verify", ExitCode.VERIFICATION_FAILED, "drifted", checks=(check,), diagnostics=said)


def _not_applied(session: Session, outcome: str, why: str, remedy: str) -> Report:
    check = CheckResult(Tier.STATIC, "files-as-applied", CheckOutcome.FAILED, why)
    diagnostic = Diagnostic(outcome, Severity.ERROR, f"{session.installation.root}: {why}", remedy=remedy)
    return session.report("verify", ExitCode.VERIFICATION_FAILED, outcome, checks=(check,), diagnostics=(diagnostic,))
