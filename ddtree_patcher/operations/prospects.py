"""What an upgrade means for each step: its prospect, and the changed symbols among those that it touches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..codemods import AddFile
from ..fingerprint import MODULE
from ..model import Diagnostic, Severity, StepOutcome, StepProspect, StepResult
from ..patchset import Patchset, Step, Variant
from ..snapshot_compare import ChangeKind, SymbolChange

Name = tuple[str, str]  # a file and a dotted name in it; ``<module>`` is what belongs to no definition
VariantThere = Callable[[str], str | None]  # of a step, on the snapshot's release; empty: none; None: not known


@dataclass(frozen=True, slots=True)
class Outlook:
    """One step beside an upgrade."""

    step: str
    prospect: StepProspect
    here: StepResult
    there: str | None  # the variant on the snapshot's release; empty: none fitted; None: that is not known
    touches: frozenset[Name]
    reason: Diagnostic | None = None  # why it needs work; None when it does not


def outlooks(
    patchset: Patchset, steps: Sequence[StepResult], reasons: Sequence[Diagnostic], variant_there: VariantThere
) -> tuple[Outlook, ...]:
    """The steps as they were planned here (and the plan's diagnostics), beside the variants of the release there."""
    found = []
    for here in steps:
        declared = patchset.by_id[here.id]
        there = variant_there(here.id)
        if there and there not in {variant.name for variant in declared.variants}:
            there = None  # what is remembered is of another version of the patchset
        why = _reason(declared, here, steps, reasons) if here.outcome.is_conflict else None
        word, touches = prospect(declared, here, there), touched(declared, here, there)
        found.append(Outlook(here.id, word, here, there, touches, why))
    return tuple(found)


def _reason(
    step: Step, here: StepResult, steps: Sequence[StepResult], reasons: Sequence[Diagnostic]
) -> Diagnostic | None:
    """Why a step has no place: what the plan says of it, else the steps that it waits for."""
    waits = [item.id for item in steps if item.id in step.requires and item.outcome.is_conflict]
    for item in reasons:
        if item.step == step.id:
            return item
    if here.outcome is not StepOutcome.BLOCKED_BY:
        return None
    return Diagnostic(here.outcome.value, Severity.NOTE, f"{step.id} waits for {', '.join(waits)}", step=step.id)


def prospect(step: Step, here: StepResult, there: str | None) -> StepProspect:
    """One word for what became of a step."""
    if here.outcome.is_conflict:
        return StepProspect.NEEDS_WORK
    if here.outcome is StepOutcome.UPSTREAMED:
        return StepProspect.UPSTREAMED
    edits = {variant.name: variant.edits for variant in step.variants}
    if here.outcome is StepOutcome.NOT_NEEDED:
        return StepProspect.NO_LONGER_NEEDED if there and edits[there] else StepProspect.NOT_NEEDED
    if not there:
        return StepProspect.FITS
    if not edits[there]:
        return StepProspect.NEEDED_SINCE
    return StepProspect.STILL_FITS if there == here.variant else StepProspect.FITS_BY_ANOTHER_VARIANT


def touched(step: Step, here: StepResult, there: str | None) -> frozenset[Name]:
    """The symbols that the step edits, or that its contracts name, by the variants of both releases.

    By all of its variants where it is not known which one it took there.
    """
    variants = [item for item in step.variants if there is None or item.name in (here.variant, there)]
    return frozenset(_names(step, variants))


def _names(step: Step, variants: Sequence[Variant]) -> Iterator[Name]:
    for edit in (edit for variant in variants for edit in variant.edits):
        if not isinstance(edit, AddFile):
            yield from ((edit.path, name or MODULE) for name in edit.symbols())
    contracts = [item for variant in variants for item in variant.contract]
    if any(variant.edits for variant in variants):  # a step that does nothing calls nothing
        contracts += step.contract
    yield from ((item.path, item.name) for item in contracts)


def concerns(change: SymbolChange, touches: frozenset[Name]) -> bool:
    """Whether a change is one of a touched symbol; one of a file as a whole, of the file of a touched one."""
    if change.change in (ChangeKind.FILE_ADDED, ChangeKind.FILE_REMOVED):
        return any(path == change.path for path, _ in touches)
    places = [(change.path, change.qualname), (change.new_path, change.new_qualname)]
    return any((path, _plain(name)) in touches for path, name in places)


def _plain(qualname: str) -> str:
    """Without the ``#n`` of a name that is defined several times."""
    return ".".join(part.partition("#")[0] for part in qualname.split("."))
