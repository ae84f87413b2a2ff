"""The heap of the paper against the definition: all prefixes, sorted. Plain Python on both sides."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from oracles.heap_tree import Candidates, best_first_tree, brute_force_tree, chain, children, links, mask, walk

# Quarters, so that ties are everywhere and sums exact; some candidates do not exist.
logprobs = st.one_of(st.integers(-8, 0).map(lambda quarters: quarters / 4), st.floats(-5, 0))
rows = st.lists(logprobs, min_size=1, max_size=4).map(lambda row: sorted(row, reverse=True))
absent = st.lists(st.sampled_from((-math.inf, math.nan)), max_size=2)


@st.composite
def candidates(draw: st.DrawFn) -> Candidates:
    made = draw(st.lists(st.tuples(rows, absent), min_size=1, max_size=4))
    return [list(enumerate([*row, *gone])) for row, gone in made]


budgets = st.integers(1, 40)


@given(candidates(), budgets, st.booleans())
def test_the_heap_pops_what_sorting_everything_gives(offered: Candidates, budget: int, spine: bool) -> None:
    assert best_first_tree(9, offered, budget, spine=spine) == brute_force_tree(9, offered, budget, spine=spine)


@given(candidates(), budgets)
def test_the_tree_is_closed_and_in_order(offered: Candidates, budget: int) -> None:
    tree = best_first_tree(9, offered, budget)
    assert [node.score for node in tree] == sorted((node.score for node in tree), reverse=True)
    for number, node in enumerate(tree[1:], 1):
        assert 0 <= node.parent < number
        assert node.depth == tree[node.parent].depth + 1


def test_the_tie_break_by_an_example() -> None:
    """Two positions of two equal candidates: breadth first, then by the parent, then by rank."""
    tree = best_first_tree(9, [[(1, -1.0), (2, -1.0)], [(3, 0.0), (4, 0.0)]], 10)
    assert [(node.depth, node.parent, node.rank) for node in tree[1:]] == [
        (1, 0, 0), (1, 0, 1), (2, 1, 0), (2, 1, 1), (2, 2, 0), (2, 2, 1),
    ]  # fmt: skip


def test_the_paper_s_walk_through_by_hand() -> None:
    """Probabilities 0.6, 0.4 and then 0.9, 0.1: the four best of six prefixes."""
    offered = [[(10, math.log(0.6)), (11, math.log(0.4))], [(20, math.log(0.9)), (21, math.log(0.1))]]
    tree = best_first_tree(9, offered, 4)
    assert [(node.token, node.parent) for node in tree] == [(9, -1), (10, 0), (20, 1), (11, 0), (20, 3)]
    assert links(tree) == ([1, 2, -1, 4, -1], [-1, 3, -1, -1, -1])
    assert [[number for number, seen in enumerate(row) if seen] for row in mask(tree)] == [
        [0], [0, 1], [0, 1, 2], [0, 3], [0, 3, 4],
    ]  # fmt: skip
    target = {0: 11, 3: 20, 4: 5}  # what it puts after each node; it is not asked at the others
    assert walk(tree, target.__getitem__) == ([0, 3, 4], 5)
    assert walk(tree, {0: 7}.__getitem__) == ([0], 7)


@given(candidates(), budgets)
def test_links_and_children_tell_the_same(offered: Candidates, budget: int) -> None:
    tree = best_first_tree(9, offered, budget)
    first_child, next_sibling = links(tree)
    for number in range(len(tree)):
        found, child = [], first_child[number]
        while child >= 0:
            found.append(child)
            child = next_sibling[child]
        assert found == children(tree, number)


def test_one_candidate_and_the_budget_of_the_block_make_the_chain() -> None:
    offered = [[(token, -0.1 * token)] for token in range(1, 8)]
    assert best_first_tree(9, offered, 7) == chain(9, offered)
