"""Which variant of a step fits the code: exactly one, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from .codemods import NotFound
from .model import StepOutcome
from .patchset import Step, Variant
from .shape import Holds
from .tree import Tree


@dataclass(frozen=True, slots=True)
class NoVariant:
    """Why no variant of a step was chosen, and the file in which the code has another shape."""

    outcome: StepOutcome
    reason: str
    path: str = ""
    near: NotFound | None = None  # where a variant's statement was looked for; None when nothing else was missing


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
    wanted = "; ".join(f"{variant.name} needs: {', '.join(map(str, shapes))}" for variant, shapes in failing)
    paths = [path for _, shapes in failing for shape in shapes for path in shape.paths()]
    present = [path for path in paths if tree.get(path) is not None]
    if not present:
        return NoVariant(StepOutcome.FILE_MISSING, f"there is no {' or '.join(dict.fromkeys(paths))}", paths[0])
    wants = [shape for _, shapes in failing for shape in shapes if isinstance(shape, Holds)]
    misses = [(shape.path, miss) for shape in wants if (miss := shape.miss(tree)) is not None]
    path, near = next((pair for pair in misses if pair[1].candidates), (present[0], None))
    outcome = near.outcome if near is not None else StepOutcome.ANCHOR_MISSING
    several = " (several places match)" if outcome is StepOutcome.ANCHOR_AMBIGUOUS else ""
    return NoVariant(outcome, f"the code fits no known variant{several}; {wanted}", path, near)
