"""Decoding with the plain models: without speculation, with DFLASH's chain, and with an exact best-first tree.

The target is asked one token after the other, so that no mask, no position and no cache row of a tree can be wrong
here; what speculation saves is counted, not saved. A *step* is one verify forward of the engine: prefill decides the
first token, and every step decides the tokens that it accepts and one more, the bonus, which is the next step's root.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from oracles.dflash_models import Pair, Target, TargetState
from oracles.heap_tree import Candidates, Node, best_first_tree, chain, walk

Choose = Callable[[Tensor], int]  # the target's logits after a token → the token that follows


@dataclass(frozen=True)
class Step:
    """One verify forward."""

    root: int  # the token decided by the step before, or by prefill
    candidates: Candidates  # position → rank → (token, log-prob), what the drafter offers
    tree: Sequence[Node]  # what is verified; a chain is a tree too
    path: Sequence[int]  # the nodes that are accepted, the root first
    emitted: Sequence[int]  # the tokens decided here, in order, cut off where decoding ends

    @property
    def accepted(self) -> int:
        """Draft tokens that the target agrees with, whether or not decoding ends before them."""
        return len(self.path) - 1


@dataclass(frozen=True)
class Decoded:
    """A request from its prompt to its end."""

    tokens: Sequence[int]  # all that is decided, the end-of-sequence token included
    steps: Sequence[Step]  # empty without speculation

    @property
    def verify_count(self) -> int:
        return len(self.steps)


@dataclass(frozen=True)
class Limits:
    """When a request ends."""

    new_tokens: int
    stop_tokens: frozenset[int] = frozenset()

    def cut(self, already: int, tokens: Sequence[int]) -> Sequence[int]:
        """Those of ``tokens`` that still belong to a request that has ``already`` decided so many."""
        room = tokens[: self.new_tokens - already]
        stops = [place for place, token in enumerate(room) if token in self.stop_tokens]
        return room[: stops[0] + 1] if stops else room

    def reached(self, tokens: Sequence[int]) -> bool:
        return len(tokens) >= self.new_tokens or (bool(tokens) and tokens[-1] in self.stop_tokens)


class Proposal(Protocol):
    """How a step turns the drafter's log-probs into what the target verifies."""

    topk: int

    def tree(self, root: int, candidates: Candidates) -> list[Node]: ...


@dataclass(frozen=True)
class Chain:
    """DFLASH: the first candidate of every position."""

    topk: int = 1

    def tree(self, root: int, candidates: Candidates) -> list[Node]:
        return chain(root, candidates)


@dataclass(frozen=True)
class Tree:
    """DDTREE: the best ``budget`` prefixes of the first ``topk`` candidates of every position."""

    budget: int
    topk: int = 8
    spine: bool = False

    def tree(self, root: int, candidates: Candidates) -> list[Node]:
        return best_first_tree(root, candidates, self.budget, spine=self.spine)


def greedy(logits: Tensor) -> int:
    """The best token; of equals the lowest."""
    return int(logits.argmax())


@dataclass(frozen=True)
class Sampled:
    """One draw from the target's own filtered distribution."""

    generator: torch.Generator
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0

    def __call__(self, logits: Tensor) -> int:
        probabilities = self.distribution(logits)
        return int(torch.multinomial(probabilities, 1, generator=self.generator))

    def distribution(self, logits: Tensor) -> Tensor:
        return filtered(logits, self.temperature, self.top_k, self.top_p, self.min_p)


def filtered(logits: Tensor, temperature: float, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0) -> Tensor:
    """The distribution that SGLang samples from, in float64.

    Every filter looks at the distribution that the temperature alone gives, and what all of them leave is scaled to
    one. ``top_k`` 0 keeps every token; ``top_p`` keeps a token while those before it weigh at most that much;
    ``min_p`` is a share of the best token's probability.
    """
    probabilities, order = (logits.double() / temperature).softmax(-1).sort(descending=True, stable=True)
    keep = probabilities.cumsum(-1) - probabilities <= top_p
    keep &= probabilities >= min_p * probabilities[..., :1]
    if top_k:
        keep &= torch.arange(len(probabilities)) < top_k
    kept = torch.where(keep, probabilities, 0.0)
    return torch.zeros_like(kept).scatter(-1, order, kept / kept.sum())


def decode_plainly(target: Target, prompt: Sequence[int], limits: Limits, choose: Choose = greedy) -> Decoded:
    """One token a forward."""
    state = target.extend(None, prompt)
    tokens = [choose(state.logits)]
    while not limits.reached(tokens):
        state = target.extend(state, tokens[-1:])
        tokens.append(choose(state.logits))
    return Decoded(tokens, [])


def decode_speculatively(
    pair: Pair, prompt: Sequence[int], proposal: Proposal, limits: Limits, choose: Choose = greedy
) -> Decoded:
    """One tree, or chain, a step. ``choose`` is asked once a decided token, in order, and never for another."""
    state = pair.target.extend(None, prompt)
    tokens, steps = [choose(state.logits)], []
    while not limits.reached(tokens):
        candidates = draft(pair, state, tokens[-1], proposal.topk)
        tree = proposal.tree(tokens[-1], candidates)
        state, path, bonus = _verify(pair.target, state, tree, choose)
        decided = [*(tree[node].token for node in path[1:]), bonus]
        emitted = limits.cut(len(tokens), decided)
        steps.append(Step(tokens[-1], candidates, tree, path, emitted))
        tokens.extend(emitted)
    return Decoded(tokens, steps)


def draft(pair: Pair, state: TargetState, root: int, topk: int) -> Candidates:
    """The drafter's best tokens for every position after ``root``; of equals the lowest token first."""
    logprobs, tokens = pair.drafter.logprobs(state.features, root).sort(dim=-1, descending=True, stable=True)
    rows = zip(tokens[:, :topk].tolist(), logprobs[:, :topk].tolist(), strict=True)
    return [list(zip(*row, strict=True)) for row in rows]


def _verify(
    target: Target, state: TargetState, tree: Sequence[Node], choose: Choose
) -> tuple[TargetState, Sequence[int], int]:
    """(the state after every accepted node, their numbers, the bonus)."""

    def after(node: int) -> int:
        nonlocal state
        state = target.extend(state, [tree[node].token])
        return choose(state.logits)

    path, bonus = walk(tree, after)
    return state, path, bonus
