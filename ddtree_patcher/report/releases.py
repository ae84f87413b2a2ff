"""What the rows of ``matrix`` have in common, however they are drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from ..model import Capability, CheckOutcome, ReleaseResult, Severity, StepOutcome


def steps_of(row: ReleaseResult) -> str:
    """How many steps ended how: ``9 pending, 1 not_needed``."""
    counts = Counter(step.outcome for step in row.steps)
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in StepOutcome if counts[outcome])


def checks_of(row: ReleaseResult) -> str:
    """How many static checks ended how; empty where there was nothing to check."""
    counts = Counter(check.outcome for check in row.checks)
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in CheckOutcome if counts[outcome])


def reasons_of(row: ReleaseResult) -> Iterator[tuple[str, str]]:
    """Each error of a row, with its place (empty where it has none)."""
    for item in row.diagnostics:
        if item.severity is Severity.ERROR:
            yield item.summary, f"{item.path}:{item.line}" if item.path and item.line else item.path


def word_of(capability: Capability, version: str) -> str:
    """What tests showed there: ``yes``, ``partly`` (some of it is refused), ``refused``, or a dash: nothing."""
    shown, refused = capability.shown.get(version), capability.refused.get(version)
    return ("partly" if refused else "yes") if shown else ("refused" if refused else "–")


def variants_of(rows: Sequence[ReleaseResult]) -> Iterator[tuple[str, str, str, str]]:
    """Step, variant, outcome, and the releases on which it is so, for every step that has a place."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        for step in row.steps:
            if not step.outcome.is_conflict:
                found.setdefault((step.id, step.variant, str(step.outcome)), []).append(row.version)
    order = list(dict.fromkeys(step.id for row in rows for step in row.steps))
    for (step_id, variant, outcome), versions in sorted(found.items(), key=lambda item: order.index(item[0][0])):
        yield step_id, variant, outcome, spans(versions, [row.version for row in rows])


def spans(versions: Collection[str], among: Sequence[str]) -> str:
    """Releases in few words: neighbours among all that were looked at are drawn together, ``0.5.11 … 0.5.13``."""
    runs: list[list[str]] = []
    previous = ""
    for version in among:
        if version in versions:
            if runs and runs[-1][-1] == previous:
                runs[-1].append(version)
            else:
                runs.append([version])
        previous = version
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]} … {run[-1]}" for run in runs)
