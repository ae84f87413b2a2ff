"""What a target forward and the kernels read: ancestors, masks, links."""

from __future__ import annotations

import torch
from cases import Batch, anything, budgets, drafted, nodes, spines
from ddtree_tree import DraftTree, ancestors, links, packed_mask, visibility
from hypothesis import given
from hypothesis import strategies as st

from oracles import heap_tree

widths = st.integers(0, 50)


@given(anything(), budgets, spines, widths)
def test_ancestors_lead_from_a_node_to_the_root(batch: Batch, budget: int, spine: bool, width: int) -> None:
    tree = batch.tree(budget, width=width, spine=spine)
    table = ancestors(tree)
    assert table.shape == (*tree.tokens.shape, tree.max_depth + 1)
    for request, parents in enumerate(tree.parents.tolist()):
        for number in range(len(parents)):
            line = [number]
            while parents[line[-1]] >= 0:
                line.append(parents[line[-1]])
            assert table[request, number].tolist() == line + [-1] * (tree.max_depth + 1 - len(line))


@given(anything(), budgets, spines, widths)
def test_a_node_sees_itself_and_its_ancestors_alone(batch: Batch, budget: int, spine: bool, width: int) -> None:
    tree = batch.tree(budget, width=width, spine=spine)
    seen = visibility(ancestors(tree))
    assert seen.dtype == torch.bool
    for request in range(len(batch)):
        expected = torch.eye(seen.shape[1], dtype=torch.bool)  # padding sees itself
        rows = torch.tensor(heap_tree.mask(nodes(tree, request)))
        expected[: len(rows), : len(rows)] = rows
        assert torch.equal(seen[request], expected)


@given(anything(), budgets, widths, st.lists(st.integers(0, 9), min_size=3, max_size=3))
def test_the_packed_mask_is_every_request_s_own_mask_in_turn(
    batch: Batch, budget: int, width: int, prefixes: list[int]
) -> None:
    """Unequal prefixes: equal ones would hide a wrong start."""
    tree = batch.tree(budget, width=width)
    packed, expected = pack(tree, prefixes[: len(batch)]), []
    for request, prefix in enumerate(prefixes[: len(batch)]):
        real = len(nodes(tree, request))
        rows = heap_tree.mask(nodes(tree, request))
        for number in range(tree.tokens.shape[1]):
            expected += [True] * prefix  # the whole prefix; nobody reads what padding saw
            expected += [
                rows[number][column] if number < real > column else column == number
                for column in range(tree.tokens.shape[1])
            ]
    assert packed.tolist() == expected


@given(anything(), budgets, st.lists(st.integers(0, 9), min_size=3, max_size=3))
def test_a_request_s_part_of_the_packed_mask_does_not_depend_on_the_others(
    batch: Batch, budget: int, prefixes: list[int]
) -> None:
    alone = [
        pack(batch.alone(request).tree(budget), [prefix])
        for request, prefix in zip(range(len(batch)), prefixes, strict=False)
    ]
    assert torch.equal(pack(batch.tree(budget), prefixes[: len(batch)]), torch.cat(alone))


def test_prefix_lengths_may_be_int32_as_sglang_keeps_them() -> None:
    tree = drafted(seed=5, bs=3, positions=4, vocabulary=40, ranks=3).tree(6)
    lens = torch.tensor([3, 0, 11])
    total = int((7 * (lens + 7)).sum())
    seen = visibility(ancestors(tree))
    assert torch.equal(packed_mask(seen, lens.int(), total), packed_mask(seen, lens, total))


def test_a_size_that_is_only_a_bound_leaves_the_rest_true() -> None:
    """Under overlap scheduling the host knows the lengths of the step before, and how far they can have grown."""
    tree = drafted(seed=5, bs=3, positions=4, vocabulary=40, ranks=3).tree(6)
    lens = torch.tensor([3, 0, 11])
    total = int((7 * (lens + 7)).sum())
    seen = visibility(ancestors(tree))
    bounded = packed_mask(seen, lens, total + 100)
    assert torch.equal(bounded[:total], packed_mask(seen, lens, total))
    assert bounded[total:].all() and bounded.numel() == total + 100


@given(anything(), budgets, spines, widths)
def test_links_are_first_child_and_next_sibling(batch: Batch, budget: int, spine: bool, width: int) -> None:
    tree = batch.tree(budget, width=width, spine=spine)
    first_child, next_sibling = links(tree)
    for request in range(len(batch)):
        real = nodes(tree, request)
        beyond = [-1] * (tree.tokens.shape[1] - len(real))
        children, siblings = heap_tree.links(real)
        assert first_child[request].tolist() == children + beyond
        assert next_sibling[request].tolist() == siblings + beyond


@given(anything(), budgets, spines)
def test_following_the_links_visits_every_node_once(batch: Batch, budget: int, spine: bool) -> None:
    tree = batch.tree(budget, width=budget + 4, spine=spine)
    for request, (child, sibling) in enumerate(zip(*(part.tolist() for part in links(tree)), strict=True)):
        visited, ahead = [], [0]
        while ahead:
            node = ahead.pop()
            assert node not in visited
            visited.append(node)
            for following in (child[node], sibling[node]):
                assert following == -1 or following > node
                ahead += [following] if following >= 0 else []
        assert sorted(visited) == list(range(len(nodes(tree, request))))


@given(anything(), budgets, spines, widths)
def test_what_kernels_read_lies_in_memory_without_gaps(batch: Batch, budget: int, spine: bool, width: int) -> None:
    """They go by pointers and know no strides."""
    tree = batch.tree(budget, width=width, spine=spine)
    lens = [3] * len(batch)
    for tensor in (tree.tokens, tree.depths, tree.parents, *links(tree), pack(tree, lens)):
        assert tensor.is_contiguous()


def pack(tree: DraftTree, prefixes: list[int]) -> torch.Tensor:
    width = tree.tokens.shape[1]
    total = sum(width * (prefix + width) for prefix in prefixes)
    return packed_mask(visibility(ancestors(tree)), torch.tensor(prefixes), total)
