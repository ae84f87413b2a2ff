"""``walk`` and ``chain_of``: what the target accepts, and how a chain verifier is told."""

from __future__ import annotations

from itertools import pairwise

import torch
from cases import Batch, anything, budgets, nodes, spines
from ddtree_tree import DraftTree, Path, ancestors, chain_of, nodes_at, walk
from hypothesis import given
from hypothesis import strategies as st

from oracles import heap_tree

seeds = st.integers(0, 2**32)
widths = st.integers(0, 50)


def agreeing(tree: DraftTree, seed: int) -> torch.Tensor:
    """A target that mostly follows the tree: at most nodes it chooses one of the children, if there is one."""
    generator = torch.Generator().manual_seed(seed)
    bs, width = tree.tokens.shape
    choices = torch.randint(0, 7, (bs, width), generator=generator)
    for request in range(bs):
        found = nodes(tree, request)
        for number in range(len(found)):
            family = heap_tree.children(found, number)
            if family and torch.rand((), generator=generator) < 0.8:
                pick = int(torch.randint(0, len(family), (), generator=generator))
                choices[request, number] = found[family[pick]].token
    return choices


def walked(tree: DraftTree, choices: torch.Tensor) -> Path:
    return walk(tree, ancestors(tree), choices)


@given(anything(), budgets, spines, widths, seeds)
def test_the_path_is_that_of_a_plain_walk(batch: Batch, budget: int, spine: bool, width: int, seed: int) -> None:
    tree = batch.tree(budget, width=width, spine=spine)
    choices = agreeing(tree, seed)
    path = walked(tree, choices)
    for request in range(len(batch)):
        found, row = nodes(tree, request), choices[request].tolist()
        expected, bonus = heap_tree.walk(found, row.__getitem__)
        length = int(path.lengths[request])
        assert path.order[request, :length].tolist() == expected
        assert int(path.bonus[request]) == bonus
        assert bool(path.left_chain[request]) == any(found[number].rank for number in expected)


@given(anything(), budgets, spines, widths, seeds)
def test_the_path_descends_from_the_root_and_the_order_holds_every_node_once(
    batch: Batch, budget: int, spine: bool, width: int, seed: int
) -> None:
    tree = batch.tree(budget, width=width, spine=spine)
    path = walked(tree, agreeing(tree, seed))
    for request in range(len(batch)):
        order, length = path.order[request].tolist(), int(path.lengths[request])
        assert sorted(order) == list(range(tree.tokens.shape[1]))
        assert order[0] == 0
        assert 1 <= length <= tree.max_depth + 1
        for above, node in pairwise(order[:length]):
            assert tree.parents[request, node] == above < node


@given(anything(), budgets, st.integers(1, 20), seeds)
def test_padding_is_never_accepted_whatever_the_target_chooses(batch: Batch, budget: int, more: int, seed: int) -> None:
    """Also where it chooses the token that padding repeats."""
    tree = batch.tree(budget, width=budget + 1 + more)
    for choices in (batch.roots[:, None].expand_as(tree.tokens), tree.tokens, agreeing(tree, seed)):
        path = walked(tree, choices)
        for request in range(len(batch)):
            accepted = path.order[request, : int(path.lengths[request])]
            assert tree.is_node[request, accepted].all()


@given(anything(), budgets, seeds)
def test_choices_off_the_path_change_nothing(batch: Batch, budget: int, seed: int) -> None:
    """The logits of rejected nodes, and of padding, may be anything."""
    tree = batch.tree(budget, width=budget + 3)
    choices = agreeing(tree, seed)
    path = walked(tree, choices)
    accepted = torch.arange(tree.tokens.shape[1]) < path.lengths[:, None]
    on_path = torch.zeros_like(accepted).scatter_(1, path.order, accepted)
    other = walked(tree, torch.where(on_path, choices, -1))
    assert torch.equal(other.lengths, path.lengths)
    assert torch.equal(other.bonus, path.bonus)
    assert torch.equal(other.order[accepted], path.order[accepted])


@given(anything(), budgets, seeds)
def test_a_request_walks_the_same_alone_and_in_a_batch(batch: Batch, budget: int, seed: int) -> None:
    tree = batch.tree(budget)
    choices = agreeing(tree, seed)
    together = walked(tree, choices)
    for request in range(len(batch)):
        alone = walked(batch.alone(request).tree(budget), choices[request : request + 1])
        assert torch.equal(alone.order[0], together.order[request])
        assert alone.bonus[0] == together.bonus[request]


@given(anything(), budgets, spines, widths, seeds, st.booleans())
def test_a_chain_verifier_accepts_exactly_the_path(
    batch: Batch, budget: int, spine: bool, width: int, seed: int, whole: bool
) -> None:
    """However long the chain has to be: DFLASH's own verification takes a whole block."""
    tree = batch.tree(budget, width=width, spine=spine)
    choices = agreeing(tree, seed)
    path = walked(tree, choices)
    length = tree.tokens.shape[1] if whole else 0
    proposed, chosen = chain_of(tree, path, choices, length)
    assert proposed.shape == chosen.shape == (len(batch), length or tree.max_depth + 1)
    for request in range(len(batch)):
        offered, wanted = proposed[request].tolist(), chosen[request].tolist()
        accepted = 0
        while accepted + 1 < len(offered) and offered[accepted + 1] == wanted[accepted]:
            accepted += 1
        assert accepted + 1 == int(path.lengths[request])
        assert wanted[accepted] == int(path.bonus[request])
        assert offered[: accepted + 1] == tree.tokens[request, path.order[request, : accepted + 1]].tolist()
        assert min(offered) >= 0


@given(anything(), budgets, seeds)
def test_with_the_spine_no_less_is_accepted_than_by_the_chain(batch: Batch, budget: int, seed: int) -> None:
    """A budget of at least the block: the target's choices are a function of the prefix, here its last token."""
    budget += batch.tokens.shape[1]
    generator = torch.Generator().manual_seed(seed)
    tree = batch.tree(budget, spine=True)
    table = torch.randint(0, 3, (8,), generator=generator)
    after = torch.where(torch.rand(8, generator=generator) < 0.5, batch.tokens[0, 0, 0], table)
    choices = after[tree.tokens]
    path = walked(tree, choices)
    for request in range(len(batch)):
        chain = [row[0][0] for row in batch.candidates(request) if row[0][1] > float("-inf")]
        previous, accepted = int(batch.roots[request]), 0
        while accepted < len(chain) and chain[accepted] == int(after[previous]):
            previous, accepted = chain[accepted], accepted + 1
        if batch.logprobs[request, :, 0].isfinite().all():
            assert int(path.lengths[request]) >= accepted + 1


@given(anything(), budgets, spines, widths, seeds)
def test_a_depth_on_the_path_is_a_node(batch: Batch, budget: int, spine: bool, width: int, seed: int) -> None:
    """Whose recurrent states are kept: of the last accepted node, and of those that the radix cache asks for."""
    tree = batch.tree(budget, width=width, spine=spine)
    path = walked(tree, agreeing(tree, seed))
    for depth in range(int(path.lengths.max())):
        depths = torch.where(depth < path.lengths, depth, -1)
        found = nodes_at(path, depths)
        for request, node in enumerate(found.tolist()):
            if depth >= int(path.lengths[request]):
                assert node == -1
            else:
                assert int(tree.depths[request, node]) == depth
                assert depth == 0 or int(tree.parents[request, node]) == int(path.order[request, depth - 1])
    last = nodes_at(path, path.lengths - 1)
    assert last.tolist() == [int(path.order[r, int(path.lengths[r]) - 1]) for r in range(len(last))]
