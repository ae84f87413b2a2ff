"""The sampled walk emits the target's own distribution, whatever the drafter thinks: one draw at every node, then
follow it. Rules that look alike and are biased (hipfire issue 483) must be noticed by the same test.

Two tokens are looked at. The first comes from the walk at the root. The second comes from the node of the first, where
the tree has it, and else from the root of the next step's tree: both in thousands of requests at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from cases import nodes
from ddtree_tree import DraftTree, ancestors, build_tree, walk
from torch import Tensor

from oracles.chi_square import chance
from oracles.decode import filtered
from oracles.heap_tree import children

VOCABULARY, DRAWS, BUDGET = 8, 20_000, 12
SURE, NEVER = 1e-10, 1e-3  # chances below which a rule is biased for certain, above which nothing speaks against it


@dataclass(frozen=True)
class World:
    """A target whose next token depends on the last one, and a drafter with an opinion of its own."""

    target: Tensor  # [vocabulary + 1, vocabulary]: last token → probabilities; the last row is for the prompt
    drafter: Tensor  # [vocabulary + 1, 2, vocabulary]: root → position → log-probs

    def tree(self, root: int) -> DraftTree:
        logprobs, tokens = self.drafter[root].topk(4)
        return build_tree(torch.tensor([root]), tokens[None], logprobs[None], BUDGET)


Rule = Callable[[World, DraftTree, int, torch.Generator], Tensor]  # the choices after one node, [DRAWS]


def exact(world: World, tree: DraftTree, node: int, generator: torch.Generator) -> Tensor:
    """One draw from the target's own distribution."""
    return torch.multinomial(world.target[tree.tokens[0, node]], DRAWS, replacement=True, generator=generator)


def first_child(world: World, tree: DraftTree, node: int, generator: torch.Generator) -> Tensor:
    """Accepts the first child without asking."""
    family = children(nodes(tree, 0), node)
    drawn = exact(world, tree, node, generator)
    return torch.full_like(drawn, int(tree.tokens[0, family[0]])) if family else drawn


def chain_rejection(world: World, tree: DraftTree, node: int, generator: torch.Generator) -> Tensor:
    """Accepts a child with min(1, p/q), as if it had been drawn from the drafter's marginal q; else the next child;
    at last draws from what p has more than q. Right for a drafter that samples, wrong for one that enumerates."""
    target, depth = world.target[tree.tokens[0, node]], int(tree.depths[0, node])
    family = children(nodes(tree, 0), node)
    if not family:
        return exact(world, tree, node, generator)
    marginal = world.drafter[tree.tokens[0, 0], depth].exp().double()
    residual = (target - marginal).clamp_min(0)
    choices = torch.multinomial(residual, DRAWS, replacement=True, generator=generator)
    for child in reversed(family):
        token = tree.tokens[0, child]
        accepted = torch.rand(DRAWS, generator=generator) < target[token] / marginal[token]
        choices = torch.where(accepted, token, choices)
    return choices


def emitted(world: World, rule: Rule, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The first two tokens of DRAWS requests, and which of the second came from the same step."""
    lengths, path_token, bonus = _step(world, rule, VOCABULARY, generator)
    first = torch.where(lengths > 1, path_token[:, 0], bonus)
    second = torch.where(lengths > 2, path_token[:, 1], bonus)
    for root in range(VOCABULARY):
        lengths_then, path_then, bonus_then = _step(world, rule, root, generator)
        begins = torch.where(lengths_then > 1, path_then[:, 0], bonus_then)
        second = torch.where((lengths == 1) & (first == root), begins, second)
    return first, second


def _step(world: World, rule: Rule, root: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """(accepted nodes, the tokens of the first two after the root, bonus) of DRAWS requests with one tree."""
    tree = world.tree(root)
    choices = torch.stack([rule(world, tree, node, generator) for node in range(tree.tokens.shape[1])], dim=1)
    many = DraftTree(
        *(field.expand(DRAWS, -1) for field in (tree.tokens, tree.parents, tree.depths, tree.ranks, tree.scores)),
        tree.max_depth,
    )
    path = walk(many, ancestors(many), choices)
    return path.lengths, many.tokens.gather(1, path.order[:, 1:3]), path.bonus


def chances(world: World, rule: Rule, seed: int) -> tuple[float, float]:
    """Of the first token, and of the pairs."""
    first, second = emitted(world, rule, torch.Generator().manual_seed(seed))
    begin = world.target[VOCABULARY]
    pairs = begin[:, None] * world.target[:VOCABULARY]
    counts = torch.bincount(first * VOCABULARY + second, minlength=VOCABULARY**2)
    return chance(torch.bincount(first, minlength=VOCABULARY), begin), chance(counts, pairs.flatten())


def make_world(temperature: float, top_k: int, top_p: float, min_p: float) -> World:
    generator = torch.Generator().manual_seed(20)
    logits = torch.randn(VOCABULARY + 1, VOCABULARY, generator=generator) * 1.5
    target = torch.stack([filtered(row, temperature, top_k, top_p, min_p) for row in logits])
    drafter = torch.randn(VOCABULARY + 1, 2, VOCABULARY, generator=generator).log_softmax(-1)
    return World(target, drafter)


WORLDS = [
    (0.6, 0, 1.0, 0.0),
    (1.0, 0, 1.0, 0.0),
    (1.5, 0, 1.0, 0.0),
    (1.0, 3, 1.0, 0.0),
    (1.0, 0, 0.8, 0.0),
    (1.0, 0, 1.0, 0.2),
]
WORLDS = [*WORLDS, (1.5, 5, 0.9, 0.05)]
every_world = pytest.mark.parametrize(("temperature", "top_k", "top_p", "min_p"), WORLDS)


@every_world
def test_the_sampled_walk_emits_the_target_s_distribution(
    temperature: float, top_k: int, top_p: float, min_p: float
) -> None:
    world = make_world(temperature, top_k, top_p, min_p)
    first, pairs = chances(world, exact, seed=1)
    assert first > NEVER
    assert pairs > NEVER


@pytest.mark.parametrize("rule", [first_child, chain_rejection])
@every_world
def test_a_biased_rule_is_noticed(rule: Rule, temperature: float, top_k: int, top_p: float, min_p: float) -> None:
    world = make_world(temperature, top_k, top_p, min_p)
    first, pairs = chances(world, rule, seed=1)
    assert first < SURE
    assert pairs < SURE


def test_the_test_reaches_every_case() -> None:
    """Paths of one, two and three nodes: a pair from one step, and from two."""
    lengths, _, _ = _step(make_world(1.0, 0, 1.0, 0.0), exact, VOCABULARY, torch.Generator().manual_seed(1))
    assert torch.bincount(lengths, minlength=4)[1:].min() > DRAWS // 50


def test_filters_keep_what_sglang_keeps() -> None:
    logits = torch.tensor([0.4, 0.1, 0.3, 0.2]).log()
    assert filtered(logits, 1.0).tolist() == pytest.approx([0.4, 0.1, 0.3, 0.2])
    assert filtered(logits, 1.0, top_k=2).tolist() == pytest.approx([4 / 7, 0, 3 / 7, 0])
    assert filtered(logits, 1.0, top_p=0.5).tolist() == pytest.approx([4 / 7, 0, 3 / 7, 0])
    assert filtered(logits, 1.0, min_p=0.6).tolist() == pytest.approx([4 / 7, 0, 3 / 7, 0])
    assert filtered(logits, 1.0, top_k=3, top_p=0.75).tolist() == pytest.approx([4 / 9, 0, 3 / 9, 2 / 9])
    assert filtered(logits, 0.5).tolist() == pytest.approx([16 / 30, 1 / 30, 9 / 30, 4 / 30])
