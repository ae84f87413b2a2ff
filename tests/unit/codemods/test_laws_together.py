"""What holds of several steps on one file: their order does not matter where it is free, and they disturb nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from ddtree_patcher.codemods import AddField, Codemod, ReplaceExpression
from ddtree_patcher.patchset import Patchset, Step, Variant
from ddtree_patcher.planner import draft
from ddtree_patcher.tree import Tree

from .laws import _NOISE, STYLES, apply

F = "tiny/f.py"
Make = Callable[[int], tuple[str, Codemod]]

# A piece of code with a number of its own, and the codemod that changes it and no other piece.
PIECES: tuple[Make, ...] = (
    lambda n: (f"v{n} = 'old{n}'  # é\n", ReplaceExpression(F, "", f"'old{n}'", f"('new{n}', 'ü')")),
    lambda n: (f"def run{n}():\n    return g(1, old{n})\n", ReplaceExpression(F, f"run{n}", f"old{n}", f"new{n}")),
    lambda n: (
        f"class Has{n}:\n    size: int = 1\n    last: int = 2\n",
        AddField(F, f"Has{n}", "mid: int = 3", after="size"),
    ),
)


@st.composite
def files(draw: st.DrawFn) -> tuple[str, str, dict[str, Codemod]]:
    """A file of numbered pieces among other code, what it must become, and step → codemod."""
    before, after, edits = [], [], {}
    for number in range(draw(st.integers(2, 5))):
        noise = "".join(draw(st.lists(st.sampled_from(_NOISE), max_size=2)))
        piece, codemod = draw(st.sampled_from(PIECES))(number)
        before += [noise, piece]
        after += [noise, apply(codemod, piece)]  # alone: what it becomes among others must be the same
        edits[f"s{number}"] = codemod
    noise = "".join(draw(st.lists(st.sampled_from(_NOISE), max_size=2)))
    return "".join([*before, noise]), "".join([*after, noise]), edits


@st.composite
def requirements(draw: st.DrawFn, names: list[str]) -> Mapping[str, tuple[str, ...]]:
    """Any order of the steps, and any requirements without a circle."""
    order = draw(st.permutations(names))
    return {name: tuple(draw(st.sets(st.sampled_from(order[:at])))) if at else () for at, name in enumerate(order)}


def patchset(edits: Mapping[str, Codemod], requires: Mapping[str, tuple[str, ...]], declared: list[str]) -> Patchset:
    variants = {name: (Variant("one", edits=(edit,)),) for name, edit in edits.items()}
    steps = tuple(Step(name, "it is so", "", variants[name], requires=requires[name]) for name in declared)
    return Patchset("p", "1", "", distribution="tiny", package="tiny", supports=">=1", steps=steps)


def tree(text: bytes) -> Tree:
    def read(path: str) -> bytes:
        if path != F:
            raise FileNotFoundError(path)
        return text

    return Tree(read)


@settings(max_examples=30)
@given(st.data(), files(), st.sampled_from(sorted(STYLES)))
def test_independent_steps_in_any_legal_order_give_the_same_bytes(
    data: st.DataObject, drawn: tuple[str, str, dict[str, Codemod]], style: str
) -> None:
    """And bytes outside of what each step touches alone are those of the file, in whatever style it is written."""
    before, after, edits = drawn
    for _ in range(2):
        requires = data.draw(requirements(sorted(edits)))
        declared = data.draw(st.permutations(sorted(edits)))
        made = draft(patchset(edits, requires, declared), tree(STYLES[style](before).encode()))
        assert not made.conflicts, made.diagnostics
        (planned,) = made.files
        assert planned.desired == STYLES[style](after).encode()


@settings(max_examples=15)
@given(st.data(), files())
def test_a_part_of_the_steps_changes_its_part_and_the_rest_adds_up(
    data: st.DataObject, drawn: tuple[str, str, dict[str, Codemod]]
) -> None:
    """Planned in two halves, the second on what the first gives: the same as at once."""
    before, after, edits = drawn
    first = data.draw(st.sets(st.sampled_from(sorted(edits)), min_size=1, max_size=len(edits) - 1))
    now = before.encode()
    for part in (sorted(first), sorted(set(edits) - first)):
        free = dict.fromkeys(part, ())
        (planned,) = draft(patchset(edits, free, part), tree(now)).files
        now = planned.desired
    assert now == after.encode()
