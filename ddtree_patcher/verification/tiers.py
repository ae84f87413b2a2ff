"""The tiers that run the patched code, each in the target's own interpreter and in processes of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..model import CheckOutcome, CheckResult, Tier
from .names import module_name
from .probes_runner import IMPORTS, kept_bytecode, run_probe
from .supervisor import Say

IMPORT_LIMIT = 120.0  # seconds for one module
LIMITS = {Tier.SMOKE: 300.0, Tier.E2E: 900.0}  # seconds for the whole program


@dataclass(frozen=True, slots=True)
class Target:
    """What is proved, and by what."""

    python: str  # the interpreter that runs it
    folder: Path  # the tree: it holds the package
    paths: tuple[str, ...]  # changed and added files
    programs: Mapping[Tier, Path]  # the patchset's own checks; without the tiers that it has none for
    arguments: Mapping[Tier, tuple[str, ...]] = field(default_factory=dict)  # of these programs, where any are given


def running_checks(target: Target, upto: Tier, before: Sequence[CheckResult], say: Say) -> tuple[CheckResult, ...]:
    """The tiers beyond ``static``, as far as ``upto``; none is run after a failure in ``before`` or an earlier one."""
    results: list[CheckResult] = []
    tiers = [tier for tier in Tier if Tier.STATIC.rank < tier.rank <= upto.rank]
    if not tiers:
        return ()
    with kept_bytecode() as bytecode:
        for tier in tiers:
            results += _tier(target, tier, [*before, *results], say, bytecode)
    return tuple(results)


def _tier(target: Target, tier: Tier, before: Sequence[CheckResult], say: Say, bytecode: str) -> Sequence[CheckResult]:
    failed = next((item.tier for item in before if item.outcome is CheckOutcome.FAILED), None)
    if failed is not None:
        return [CheckResult(tier, str(tier), CheckOutcome.NOT_RUN, f"the {failed} tier failed")]
    if tier is Tier.IMPORT:
        return _import(target, say, bytecode)
    if tier not in target.programs:
        return [CheckResult(tier, str(tier), CheckOutcome.NOT_RUN, f"this patchset has no {tier} program")]
    say(f"running the {tier} program in {target.python}")
    program, arguments = target.programs[tier], target.arguments.get(tier, ())
    return run_probe(target.python, target.folder, program, arguments, tier, LIMITS[tier], say, bytecode)


def _import(target: Target, say: Say, bytecode: str) -> Sequence[CheckResult]:
    modules = [module_name(path) for path in target.paths if path.endswith(".py")]
    say(f"importing {len(modules)} modules in fresh processes of {target.python}")
    arguments = ["--time-limit", str(IMPORT_LIMIT), *modules]
    limit = IMPORT_LIMIT * len(modules)
    return run_probe(target.python, target.folder, IMPORTS, arguments, Tier.IMPORT, limit, say, bytecode)


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
