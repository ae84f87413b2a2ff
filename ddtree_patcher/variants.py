"""Which variant of a step fits the code: exactly one, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from .codemods import NotFound, Target
from .model import StepOutcome
from .patchset import Step, Variant
from .shape import Defines, Holds, Shape
from .tree import Tree


@dataclass(frozen=True, slots=True)
class NoVariant:
    """Why no variant of a step was chosen, and the place in which the code has another shape."""

    outcome: StepOutcome
    reason: str
    path: str = ""
    near: NotFound | None = None  # where a variant's place was looked for; None when nothing else was missing
    target: Target | None = None  # that place
    detail: str = ""  # what each variant needs that is not so


def choose_variant(step: Step, tree: Tree) -> Variant | NoVariant:
    """The one variant whose shape the code has, or the reason why there is none."""
    fitting = [variant for variant in step.variants if all(shape.holds(tree) for shape in variant.when)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        names = ", ".join(variant.name for variant in fitting)
        return NoVariant(StepOutcome.ANCHOR_AMBIGUOUS, f"the code fits several variants: {names}")
    failing = [(variant, [shape for shape in variant.when if not shape.holds(tree)]) for variant in step.variants]
    failing.sort(key=lambda pair: len(pair[1]) - len(pair[0].when))  # the one that most of the code fits comes first
    lacking = "\n".join(f"{variant.name} needs: {', '.join(map(str, shapes))}" for variant, shapes in failing)
    paths = [path for _, shapes in failing for shape in shapes for path in shape.paths()]
    present = [path for path in paths if tree.get(path) is not None]
    if not present:
        return NoVariant(StepOutcome.FILE_MISSING, f"there is no {' or '.join(dict.fromkeys(paths))}", paths[0])
    path, near, target = _nearest(failing, tree) or (present[0], None, None)
    outcome = near.outcome if near is not None else StepOutcome.ANCHOR_MISSING
    several = " (several places match)" if outcome is StepOutcome.ANCHOR_AMBIGUOUS else ""
    reason = f"the code in {path} fits no known variant{several}"
    return NoVariant(outcome, reason, path, near, target, lacking)


def _nearest(failing: list[tuple[Variant, list[Shape]]], tree: Tree) -> tuple[str, NotFound, Target] | None:
    """The place that the most fitting variant misses: one that something comes near to, where there is one."""
    misses = [
        (shape.path, miss, shape.target())
        for _, shapes in failing
        for shape in shapes
        if isinstance(shape, Holds | Defines) and (miss := shape.miss(tree)) is not None
    ]
    return next((item for item in misses if item[1].candidates), next(iter(misses), None))
