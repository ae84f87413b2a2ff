"""The tiers that run the patched code, each in the target's own interpreter and in processes of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ..model import CheckOutcome, CheckResult, Tier
from .names import module_name
from .probes_runner import IMPORTS, run_probe

IMPORT_LIMIT = 120.0  # seconds for one module
SMOKE_LIMIT = 300.0  # seconds for the whole program


def running_checks(
    python: str,
    folder: Path,
    paths: Sequence[str],
    smoke: Path | None,
    upto: Tier,
    say: Callable[[str], None],
) -> tuple[CheckResult, ...]:
    """The import and smoke tiers, as far as ``upto``; a tier is not run after a failure in the one before."""
    results: list[CheckResult] = []
    if upto.rank >= Tier.IMPORT.rank:
        modules = [module_name(path) for path in paths if path.endswith(".py")]
        say(f"importing {len(modules)} modules in fresh processes of {python}")
        limit = IMPORT_LIMIT * len(modules)
        arguments = ["--time-limit", str(IMPORT_LIMIT), *modules]
        results += run_probe(python, folder, IMPORTS, arguments, Tier.IMPORT, limit)
    if upto.rank >= Tier.SMOKE.rank:
        results += _smoke(python, folder, smoke, results, say)
    return tuple(results)


def _smoke(
    python: str, folder: Path, smoke: Path | None, before: Sequence[CheckResult], say: Callable[[str], None]
) -> Sequence[CheckResult]:
    if any(item.outcome is CheckOutcome.FAILED for item in before):
        return [CheckResult(Tier.SMOKE, "smoke", CheckOutcome.NOT_RUN, "the import tier failed")]
    if smoke is None:
        return [CheckResult(Tier.SMOKE, "smoke", CheckOutcome.NOT_RUN, "this patchset has no smoke program")]
    say(f"running the smoke program in {python}")
    return run_probe(python, folder, smoke, [], Tier.SMOKE, SMOKE_LIMIT)


def unmet_requirement(checks: Sequence[CheckResult], required: Tier | None) -> str:
    """Why a required tier counts as failed although nothing failed; empty when it does not."""
    if required is None:
        return ""
    for tier in Tier:
        if tier.rank > required.rank:
            break
        mine = [item for item in checks if item.tier is tier]
        skipped = next((item for item in mine if item.outcome is CheckOutcome.NOT_RUN), None)
        if skipped is not None or not mine:
            return (
                f"the {tier} tier is required and did not run: {skipped.detail if skipped else 'it was not asked for'}"
            )
    return ""
