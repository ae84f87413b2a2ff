"""``build_tree``: which prefixes enter the tree, and in which order."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch
from cases import ABSENT, Batch, anything, budgets, drafted, nodes, ragged, rounded, spines, tied, untied
from ddtree_tree import build_tree
from hypothesis import given
from hypothesis import strategies as st

from oracles.heap_tree import best_first_tree, brute_force_tree, children


@given(untied(4, 4), budgets)
def test_the_tree_holds_as_much_probability_as_any_tree_of_its_size(batch: Batch, budget: int) -> None:
    """Against all prefixes there are, with probabilities multiplied in double precision, no order and no heap."""
    tree = batch.tree(budget)
    for request in range(len(batch)):
        rows = batch.logprobs[request].double().exp().tolist()
        every = [math.prod(prefix) for depth in range(1, len(rows) + 1) for prefix in product(*rows[:depth])]
        best = math.fsum(sorted(every, reverse=True)[:budget])
        held = math.fsum(math.exp(node.score) for node in nodes(tree, request)[1:])
        assert held == pytest.approx(best, rel=1e-5)


@given(anything(), budgets, spines)
def test_the_nodes_are_those_of_the_heap_in_its_order(batch: Batch, budget: int, spine: bool) -> None:
    tree = batch.tree(budget, spine=spine)
    for request in range(len(batch)):
        expected = best_first_tree(int(batch.roots[request]), batch.candidates(request), budget, spine=spine)
        assert nodes(tree, request) == rounded(expected)


@given(st.one_of(tied(), ragged()), budgets)
def test_ties_are_decided_as_the_definition_says(batch: Batch, budget: int) -> None:
    """Against the definition alone: every prefix, sorted."""
    batch = Batch(batch.roots, batch.tokens[:, :4, :4], batch.logprobs[:, :4, :4])
    tree = batch.tree(budget)
    for request in range(len(batch)):
        expected = brute_force_tree(int(batch.roots[request]), batch.candidates(request), budget)
        assert nodes(tree, request) == rounded(expected)


@pytest.mark.parametrize("spine", [False, True])
@pytest.mark.parametrize(
    ("positions", "ranks", "budget"), [(15, 8, 64), (15, 8, 256), (7, 8, 7), (7, 4, 40), (15, 1, 15), (15, 20, 100)]
)
def test_a_batch_of_a_server_is_the_heap_s(positions: int, ranks: int, budget: int, spine: bool) -> None:
    batch = drafted(seed=budget, bs=4, positions=positions, vocabulary=97, ranks=ranks)
    tree = batch.tree(budget, spine=spine)
    for request in range(len(batch)):
        assert nodes(tree, request) == rounded(best_first_tree(request, batch.candidates(request), budget, spine=spine))


@given(anything(), budgets, spines)
def test_parents_come_first_and_siblings_ascend_and_differ(batch: Batch, budget: int, spine: bool) -> None:
    tree = batch.tree(budget, spine=spine)
    for request in range(len(batch)):
        found = nodes(tree, request)
        for number, node in enumerate(found[1:], 1):
            assert 0 <= node.parent < number
            assert node.depth == found[node.parent].depth + 1
            assert node.score <= found[node.parent].score
        for number in range(len(found)):
            family = [found[child] for child in children(found, number)]
            assert [child.rank for child in family] == list(range(len(family)))
            assert len({child.token for child in family}) == len(family)


@given(anything(), budgets, spines)
def test_a_node_is_the_candidate_that_it_says(batch: Batch, budget: int, spine: bool) -> None:
    tree = batch.tree(budget, spine=spine)
    for request in range(len(batch)):
        candidates, found = batch.candidates(request), nodes(tree, request)
        for node in found[1:]:
            token, logprob = candidates[node.depth - 1][node.rank]
            assert node.token == token
            assert node.score == pytest.approx(found[node.parent].score + logprob, abs=1e-5)


@given(anything(), st.integers(1, 30))
def test_a_larger_budget_adds_nodes_and_moves_none(batch: Batch, budget: int) -> None:
    smaller, larger = batch.tree(budget), batch.tree(budget + 1)
    for request in range(len(batch)):
        fewer, more = nodes(smaller, request), nodes(larger, request)
        assert more[: len(fewer)] == fewer
        assert len(more) - len(fewer) <= 1


@given(anything(), budgets)
def test_with_the_spine_the_chain_is_in_and_the_tree_is_no_larger(batch: Batch, budget: int) -> None:
    plain, spined = batch.tree(budget), batch.tree(budget, spine=True)
    for request in range(len(batch)):
        found = nodes(spined, request)
        here = batch.logprobs[request, :, 0].isfinite().tolist()
        length = min(budget, [*here, False].index(False))
        assert [(node.parent, node.depth, node.rank) for node in found[1 : length + 1]] == [
            (depth, depth + 1, 0) for depth in range(length)
        ]
        assert len(found) == len(nodes(plain, request))


@given(anything(), budgets, spines, st.integers(0, 60))
def test_what_no_prefix_fills_is_padding(batch: Batch, budget: int, spine: bool, width: int) -> None:
    tree = batch.tree(budget, width=width, spine=spine)
    assert tree.tokens.shape == (len(batch), max(width, budget + 1))
    padding = ~tree.is_node
    assert not padding[:, 0].any()
    assert (tree.parents[padding] == -1).all()
    assert (tree.ranks[padding] == -1).all()
    assert (tree.depths[padding] == 0).all()
    assert (tree.scores[padding] == float("-inf")).all()
    assert (tree.tokens == torch.where(padding, batch.roots[:, None], tree.tokens)).all()
    assert not tree.scores.isnan().any()
    for request in range(len(batch)):
        rows = [sum(map(math.isfinite, row)) for row in batch.logprobs[request].tolist()]
        prefixes = sum(math.prod(rows[: depth + 1]) for depth in range(len(rows)))
        assert int(tree.is_node[request].sum()) == 1 + min(budget, prefixes)


@given(anything(), budgets, spines)
def test_a_request_has_the_same_tree_alone_and_in_a_batch(batch: Batch, budget: int, spine: bool) -> None:
    together = batch.tree(budget, spine=spine)
    for request in range(len(batch)):
        assert nodes(batch.alone(request).tree(budget, spine=spine), 0) == nodes(together, request)


@given(anything(), budgets)
def test_the_input_is_left_as_it_is_and_its_layout_does_not_matter(batch: Batch, budget: int) -> None:
    tokens, logprobs = batch.tokens.clone(), batch.logprobs.clone()
    strided = Batch(
        batch.roots.int(),
        batch.tokens.permute(2, 0, 1).contiguous().permute(1, 2, 0),
        batch.logprobs.permute(2, 0, 1).contiguous().permute(1, 2, 0),
    )
    one, other = batch.tree(budget), strided.tree(budget)
    for request in range(len(batch)):
        assert nodes(one, request) == nodes(other, request)
    assert torch.equal(batch.tokens, tokens)
    assert torch.equal(batch.logprobs.nan_to_num(), logprobs.nan_to_num())


@pytest.mark.parametrize("absent", ABSENT)
def test_a_position_without_candidates_ends_every_branch(absent: float) -> None:
    logprobs = torch.tensor([[[-0.5, -1.0], [absent, absent], [-0.1, -3.0]]])
    tree = build_tree(torch.tensor([7]), torch.tensor([[[3, 4], [5, 6], [7, 8]]]), logprobs, 6)
    assert tree.tokens.tolist() == [[7, 3, 4, 7, 7, 7, 7]]
    assert tree.parents.tolist() == [[-1, 0, 0, -1, -1, -1, -1]]
    assert tree.is_node.tolist() == [[True, True, True, False, False, False, False]]


@pytest.mark.parametrize("absent", ABSENT)
def test_without_any_candidate_the_root_is_alone(absent: float) -> None:
    tree = build_tree(torch.tensor([0]), torch.zeros(1, 2, 3, dtype=torch.int64), torch.full((1, 2, 3), absent), 4)
    assert tree.is_node.tolist() == [[True, False, False, False, False]]


def test_token_0_is_a_token_like_any_other() -> None:
    """At two depths and under two parents, and as the root."""
    tokens = torch.tensor([[[0, 1], [0, 2]]])
    tree = build_tree(torch.tensor([0]), tokens, torch.tensor([[[-1.0, -1.5], [-0.25, -4.0]]]), 4)
    assert tree.tokens.tolist() == [[0, 0, 0, 1, 0]]
    assert tree.parents.tolist() == [[-1, 0, 1, 0, 3]]


def test_block_size_2_drafts_one_position() -> None:
    tree = build_tree(torch.tensor([9]), torch.tensor([[[4, 5, 6]]]), torch.tensor([[[-1.0, -2.0, -3.0]]]), 2)
    assert tree.tokens.tolist() == [[9, 4, 5]]
    assert tree.parents.tolist() == [[-1, 0, 0]]
    assert tree.max_depth == 1


def test_budget_1_drafts_the_best_token() -> None:
    tree = drafted(seed=1, bs=2, positions=5, vocabulary=50, ranks=4).tree(1)
    assert tree.depths.tolist() == [[0, 1], [0, 1]]
    assert tree.ranks.tolist() == [[0, 0], [0, 0]]


def test_topk_1_with_the_budget_of_the_block_is_the_chain() -> None:
    tree = drafted(seed=2, bs=3, positions=7, vocabulary=50, ranks=1).tree(7)
    assert tree.parents.tolist() == [[-1, 0, 1, 2, 3, 4, 5, 6]] * 3
    assert tree.depths.tolist() == [[0, 1, 2, 3, 4, 5, 6, 7]] * 3


def test_a_certain_drafter_drafts_the_chain() -> None:
    """Log-prob 0 at every position: the whole chain costs nothing, and ties with itself at every depth."""
    logprobs = torch.tensor([0.0, float("-inf")]).expand(1, 6, 2)
    tree = build_tree(torch.tensor([1]), torch.tensor([2, 3]).expand(1, 6, 2), logprobs, 8)
    assert tree.parents.tolist() == [[-1, 0, 1, 2, 3, 4, 5, -1, -1]]


def test_unlikely_candidates_are_ordered_by_likelihood_and_do_not_overflow() -> None:
    """A masked vocabulary leaves log-probs of minus thousands: finite, so they may fill a tree, but last."""
    logprobs = torch.tensor([-0.1, -900.0, -3.0e4, -3.0e38]).expand(1, 15, 4)
    tree = build_tree(torch.tensor([1]), torch.arange(4).expand(1, 15, 4), logprobs, 40)
    assert tree.is_node.all()
    assert tree.ranks[0, :16].tolist() == [0] * 16
    scores = tree.scores[0]
    assert (scores[1:] <= scores[:-1]).all()
    assert scores.isfinite().all()


@pytest.mark.parametrize(("positions", "ranks", "budget"), [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, -1)])
def test_a_tree_of_nothing_is_refused(positions: int, ranks: int, budget: int) -> None:
    with pytest.raises(ValueError, match="budget, positions and candidates"):
        build_tree(
            torch.tensor([0]),
            torch.zeros(1, positions, ranks, dtype=torch.int64),
            torch.zeros(1, positions, ranks),
            budget,
        )
