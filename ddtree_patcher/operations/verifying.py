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
from .inspecting import partial
from .session import Session
from .standing import build_of, judge_release, proved_by


def verify(session: Session, upto: Tier, required: Tier | None) -> Report:
    """Run the tiers on what is there. Never writes. Raises :class:`Interrupted` on SIGINT or SIGTERM."""
    try:
        with signals_as_exceptions():
            return _verify(session, upto, required)
    except Stopped as signal:
        raise Interrupted(f"stopped by {signal}; nothing was changed", remedy="Run it again.") from None


def _verify(session: Session, upto: Tier, required: Tier | None) -> Report:
    state = session.state()
    if session.store.journal() is not None:
        return _not_applied(
            session,
            "interrupted",
            "an earlier run ended half way",
            "Run `ddtree-patch apply` or `revert`: either recovers first.",
        )
    if state is None:
        return _not_applied(session, "clean", "nothing is applied here", "Run `ddtree-patch apply`.")
    session.refuse_other_patchset(state)
    look = Pristine(session.installation, session.store, state)
    findings = [look.find(entry.path) for entry in state.files]
    bad = [item for item in findings if item.status is not FileStatus.PATCHED]
    checks = [_as_applied(bad), _recorded(session, state)]
    if state.patchset.digest != session.identity.digest:
        reason = f"{state.patchset.id} {state.patchset.version} is applied, and this is another version of the patchset"
        checks.append(CheckResult(Tier.STATIC, "patchset-current", CheckOutcome.FAILED, reason))
    checks += static_checks(subject_on_disk(session, state, look))
    checks.append(nothing_else_changed(session.installation, [entry.path for entry in state.files], state.drift))
    upto = max(upto, required or upto, key=lambda tier: tier.rank)
    checks += run_tiers(session, [entry.path for entry in state.files], upto, checks)
    diagnostics = [*partial(state), *(explain(item, patched=True) for item in bad)]
    # A file that is not as it was applied is the cause; every other check that fails is its consequence.
    code = judge(checks[:1] if bad else checks, required, diagnostics)
    build = build_of(session.installation, look, session.loaded.patchset.supports)
    release = judge_release(build, look.glance, allow_drift=True)
    diagnostics += [*release.diagnostics, *proved_by(release, checks)]
    return session.report(
        "verify",
        code,
        steps=_steps(state, whole=not bad),
        files=tuple(file_state(item, state) for item in findings),
        checks=tuple(checks),
        diagnostics=tuple(diagnostics),
    )


def run_tiers(
    session: Session, paths: Sequence[str], upto: Tier, static: Sequence[CheckResult]
) -> tuple[CheckResult, ...]:
    """The tiers beyond ``static``, which ended so, on the tree as it is on disk."""
    loaded, installation = session.loaded, session.installation
    target = Target(
        python=installation.interpreter.executable,
        folder=installation.folder,
        paths=tuple(paths),
        programs={tier: loaded.folder / name for tier, name in loaded.patchset.programs.items()},
    )
    return running_checks(target, upto, static, session.options.say)


_REMEDIES = {
    "nothing-else-changed": "Reinstall SGLang (pip install --force-reinstall --no-deps), "
    "or apply with --allow-drift to accept these files as they are."
}


def judge(checks: Sequence[CheckResult], required: Tier | None, diagnostics: list[Diagnostic]) -> ExitCode:
    """The exit code that checks deserve; says in ``diagnostics`` what failed."""
    for item in checks:
        if item.outcome is CheckOutcome.FAILED:
            diagnostics.append(
                Diagnostic(
                    "verification_failed",
                    Severity.ERROR,
                    f"{item.tier} check {item.id} failed",
                    detail=item.detail,
                    remedy=_REMEDIES.get(item.id, "See docs/statuses.md#verification_failed."),
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
    """RECORD has the rows of the files that were added: without them uninstalling would leave those behind."""
    added = [entry for entry in state.files if entry.added]
    lost = [item.path for item in added if session.installation.recorded_sha256(item.path) != item.patched_sha256]
    if not lost:
        return CheckResult(Tier.STATIC, "added-files-recorded", CheckOutcome.PASSED)
    detail = f"RECORD was rewritten and has no row of {', '.join(lost)}: apply again"
    return CheckResult(Tier.STATIC, "added-files-recorded", CheckOutcome.FAILED, detail)


def _steps(state: State, *, whole: bool) -> tuple[StepResult, ...]:
    """The steps of the state. They are ``already`` there only while every file is as it was applied."""
    gone = {StepOutcome.ALREADY: StepOutcome.PENDING} if not whole else {}
    return tuple(replace(step, outcome=gone.get(step.outcome, step.outcome)) for step in state.steps)


def _not_applied(session: Session, outcome: str, why: str, remedy: str) -> Report:
    check = CheckResult(Tier.STATIC, "files-as-applied", CheckOutcome.FAILED, why)
    diagnostic = Diagnostic(outcome, Severity.ERROR, f"{session.installation.root}: {why}", remedy=remedy)
    return session.report("verify", ExitCode.VERIFICATION_FAILED, outcome, checks=(check,), diagnostics=(diagnostic,))
