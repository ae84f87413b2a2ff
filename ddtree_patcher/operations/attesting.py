"""``status --attest``: a statement of the patched tree, written only where all that it says was just verified."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..attestation import Attestation, to_bytes
from ..digest import sha256
from ..model import CheckOutcome, Diagnostic, ExitCode, Report, Severity, Tier
from ..output import write_output
from ..store import State
from .inspecting import status
from .session import Session
from .undisturbed import PATIENCE, undisturbed
from .verifying import verify


def attest(session: Session, file: Path, *, check: bool) -> Report:
    """The status, after the static tier ran. Exit code 5, and no file, unless the patch is applied and passes it."""

    def look() -> tuple[Report, Report, State | None]:
        return status(session, check=check), verify(session, Tier.STATIC, Tier.STATIC), session.state()

    session.options.say("verifying what is attested")
    shown, verified, state = undisturbed(session, look, patience=PATIENCE)
    told = [item for item in verified.diagnostics if item not in shown.diagnostics]
    if verified.exit_code is not ExitCode.OK or state is None:
        why = next((item for item in verified.diagnostics if item.severity is Severity.ERROR), None)
        return replace(
            shown,
            exit_code=ExitCode.VERIFICATION_FAILED,
            checks=verified.checks,
            diagnostics=(*shown.diagnostics, *told, _refusal(file, why)),
        )
    made = attestation_of(verified, state, session.installation.distribution)
    data = to_bytes(made)
    write_output(file, data)
    return replace(
        shown,
        checks=verified.checks,
        diagnostics=(*shown.diagnostics, *told, _note(file, made)),
        extra={
            **shown.extra,
            "attestation": {"file": str(file), "sha256": sha256(data), "subjects": len(made.subjects)},
        },
    )


def attestation_of(verified: Report, state: State, distribution: str) -> Attestation:
    """What may be said after a verification that passed: each file by the digest that was just read from the disk."""
    tiers = dict.fromkeys(item.tier for item in verified.checks)
    passed = {
        tier.value: tuple(
            item.id for item in verified.checks if item.tier is tier and item.outcome is CheckOutcome.PASSED
        )
        for tier in tiers
    }
    return Attestation(
        subjects={item.path: item.current_sha256 for item in verified.files},
        distribution=distribution,
        version=state.version,
        pristine={item.path: item.pristine_sha256 for item in verified.files if not item.added},
        patchset=state.patchset,
        steps=verified.steps,
        checks=passed,
        whole=state.whole,
        drift=state.drift,
    )


def _note(file: Path, made: Attestation) -> Diagnostic:
    checks = sum(map(len, made.checks.values()))
    detail = f"The {checks} checks of the static tier passed just now; no other tier is attested."
    return Diagnostic("attested", Severity.NOTE, f"{file} attests {len(made.subjects)} files", detail)


def _refusal(file: Path, why: Diagnostic | None) -> Diagnostic:
    summary = f"{file} was not written: nothing is attested that does not hold"
    detail, remedy = (why.summary, why.remedy) if why else ("", "See `ddtree-patch verify`.")
    return Diagnostic("not_attested", Severity.ERROR, summary, detail, remedy)
