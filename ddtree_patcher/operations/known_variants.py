"""Holds a step back where the code lost the shape by which the step found its place in the nearest known release.

A variant says in part what the code has not. So code in which a place was renamed or rewritten can look as it did
before that place came to be, and the variant of an older release would be taken: wrong, and nothing would tell. Going
forward is free: a shape that no older release had is judged by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..codemods import NotFound, Target
from ..model import Diagnostic, Place, Severity, StepOutcome, StepResult
from ..patchset import Patchset, Step, Variant
from ..places import place_in
from ..planner import VERBS, Draft
from ..shape import Defines, Holds
from ..survival import Survival
from ..tree import Tree

_PLACELESS = {StepOutcome.BLOCKED_BY, StepOutcome.NOT_ROUNDTRIPPABLE, StepOutcome.UPSTREAMED, StepOutcome.FILE_MISSING}


def hold_back(
    made: Draft, patchset: Patchset, survival: Survival, reference: str, pristine: Tree, *, allow_drift: bool = False
) -> Draft:
    """The draft, with every step in conflict that lost the shape which it has in ``reference``, the nearest release.

    With ``allow_drift`` such a step is planned all the same, and told of in a warning.
    """
    lost: dict[str, tuple[Diagnostic, Target]] = {}
    for result in made.steps:
        if found := _lost(result, patchset.by_id[result.id], survival, reference, pristine):
            lost[result.id] = found
    if not lost:
        return made
    planned = {result.id for result in made.steps if not result.outcome.is_conflict}
    tolerated = planned if allow_drift else set()
    held = {step: StepOutcome(item.code) for step, (item, _) in lost.items() if step not in tolerated}
    steps = _with_held(made.steps, patchset, held)
    told = {
        replace(item, severity=Severity.ERROR if step in held else Severity.WARNING): target
        for step, (item, target) in lost.items()
    }
    return replace(
        made,
        steps=steps,
        files=() if any(result.outcome.is_conflict for result in steps) else made.files,
        diagnostics=_in_order(steps, [*told, *(item for item in made.diagnostics if item.step not in lost)]),
        sought={**made.sought, **told},
    )


def _in_order(steps: Sequence[StepResult], diagnostics: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """In the order of the steps: what comes first may be the cause of what comes later."""
    places = {result.id: place for place, result in enumerate(steps)}
    return tuple(sorted(diagnostics, key=lambda item: places.get(item.step, len(places))))


def _with_held(
    steps: Sequence[StepResult], patchset: Patchset, held: Mapping[str, StepOutcome]
) -> tuple[StepResult, ...]:
    """The steps, in order: those that are held in conflict, those that wait for them blocked."""
    results: dict[str, StepResult] = {}
    for result in steps:
        waits = [name for name in patchset.by_id[result.id].requires if name in results]
        if result.id in held:
            result = replace(result, outcome=held[result.id], files=())
        elif not result.outcome.is_conflict and any(results[name].outcome.is_conflict for name in waits):
            result = replace(result, outcome=StepOutcome.BLOCKED_BY, files=())
        results[result.id] = result
    return tuple(results.values())


def _lost(
    result: StepResult, step: Step, survival: Survival, reference: str, tree: Tree
) -> tuple[Diagnostic, Target] | None:
    """What the code lost of the shape that the step went by; None where it has it, or went on to another one."""
    known = survival.variant(step.id, reference)
    if result.outcome in _PLACELESS or not known or known == result.variant:
        return None
    if result.variant and not survival.goes_back(step.id, result.variant, reference):
        return None
    variant = next((item for item in step.variants if item.name == known), None)
    missing = next(_missing(variant, tree), None) if variant else None
    if variant is None or missing is None:
        return None
    shape, target, miss, places = missing
    detail = f"By this the step knows the shape of {reference} ({variant.name})."
    if result.variant:
        detail += f" Without it the code looks as that of older releases ({result.variant}), which is not believed."
    said = Diagnostic(
        miss.outcome.value,
        Severity.ERROR,
        f"{step.id}: {VERBS[miss.outcome]} {miss.wanted} in {shape.path}"
        if miss.wanted
        else f"{step.id}: there is no {shape.path}",
        detail,
        remedy="`ddtree-patch diff` shows what changed here; the step needs a variant for this shape.",
        step=step.id,
        path=places[0].path if places else shape.paths()[0],
        line=places[0].line if places else 0,
        expected=target.as_code(),
        candidates=places,
    )
    return said, target


def _missing(variant: Variant, tree: Tree) -> Iterator[tuple[Holds | Defines, Target, NotFound, tuple[Place, ...]]]:
    """What a variant needs and the code has not, with the places that come near."""
    for shape in variant.when:
        if not isinstance(shape, Holds | Defines):
            continue
        source = tree.source(shape.path)
        if source is None:
            yield shape, shape.target(), NotFound(StepOutcome.FILE_MISSING, ""), ()
        elif (miss := shape.miss(tree)) is not None:
            places = tuple(place_in(source, item.line, item.score) for item in miss.candidates)
            yield shape, shape.target(), miss, places
