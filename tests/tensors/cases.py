"""Batches of candidates for hypothesis, and the way from tensors to the oracle's lists and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from ddtree_tree import DraftTree, build_tree
from hypothesis import strategies as st
from torch import Tensor

from oracles.heap_tree import Candidates, Node

ABSENT = (float("-inf"), float("nan"))


@dataclass(frozen=True)
class Batch:
    """What a drafter offers for some requests."""

    roots: Tensor  # [bs]
    tokens: Tensor  # [bs, L, K]
    logprobs: Tensor  # [bs, L, K], descending; not finite from some rank on

    def __len__(self) -> int:
        return len(self.roots)

    def alone(self, request: int) -> Batch:
        part = slice(request, request + 1)
        return Batch(self.roots[part], self.tokens[part], self.logprobs[part])

    def candidates(self, request: int) -> Candidates:
        """For the oracle."""
        rows = zip(self.tokens[request].tolist(), self.logprobs[request].tolist(), strict=True)
        return [list(zip(*row, strict=True)) for row in rows]

    def tree(self, budget: int, *, width: int = 0, spine: bool = False) -> DraftTree:
        return build_tree(self.roots, self.tokens, self.logprobs, budget, width=width, spine=spine)


def nodes(tree: DraftTree, request: int) -> list[Node]:
    """The root and what was drafted, without padding, which must come last."""
    real = tree.is_node[request]
    count = int(real.sum())
    assert real[:count].all(), "padding between nodes"
    fields = (tree.tokens, tree.parents, tree.depths, tree.ranks, tree.scores)
    return [Node(*row) for row in zip(*(field[request, :count].tolist() for field in fields), strict=True)]


def rounded(tree: Sequence[Node]) -> list[Node]:
    """The oracle's nodes with scores in float32, as the tensors have them."""
    return [Node(n.token, n.parent, n.depth, n.rank, torch.tensor(n.score).item()) for n in tree]


def shapes(most_positions: int = 5, most_candidates: int = 5) -> st.SearchStrategy[tuple[int, int, int]]:
    """(bs, L, K)."""
    return st.tuples(st.integers(1, 3), st.integers(1, most_positions), st.integers(1, most_candidates))


budgets = st.integers(1, 40)
spines = st.booleans()


@st.composite
def tied(draw: st.DrawFn) -> Batch:
    """Log-probs that are small multiples of a quarter: most sums are equal to some other, and all are exact."""
    shape = draw(shapes())
    count = shape[0] * shape[1] * shape[2]
    steps = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    logprobs = -(torch.tensor(steps).view(shape).cumsum(-1) + 1) / 4
    return _batch(logprobs, draw(st.integers(0, 2**32)))


@st.composite
def ragged(draw: st.DrawFn) -> Batch:
    """As :func:`tied`, but some positions have fewer candidates than others, or none."""
    batch = draw(tied())
    bs, positions, ranks = batch.logprobs.shape
    counts = draw(st.lists(st.integers(0, ranks), min_size=bs * positions, max_size=bs * positions))
    absent = draw(st.sampled_from(ABSENT))
    beyond = torch.arange(ranks) >= torch.tensor(counts).view(bs, positions, 1)
    return Batch(batch.roots, batch.tokens, batch.logprobs.masked_fill(beyond, absent))


@st.composite
def untied(draw: st.DrawFn, most_positions: int = 5, most_candidates: int = 5) -> Batch:
    """Log-probs of a random drafter, from nearly certain to nearly uniform, under a vocabulary of K + 3."""
    bs, positions, ranks = draw(shapes(most_positions, most_candidates))
    seed, sharpness = draw(st.integers(0, 2**32)), draw(st.sampled_from((0.1, 1.0, 4.0, 20.0)))
    noise = torch.randn(bs, positions, ranks + 3, generator=torch.Generator().manual_seed(seed))
    return _batch((noise * sharpness).log_softmax(-1).topk(ranks).values, seed)


def anything() -> st.SearchStrategy[Batch]:
    return st.one_of(tied(), ragged(), untied())


def drafted(seed: int, bs: int, positions: int, vocabulary: int, ranks: int) -> Batch:
    """A batch of a realistic size."""
    noise = torch.randn(bs, positions, vocabulary, generator=torch.Generator().manual_seed(seed))
    logprobs, tokens = (noise * 3).log_softmax(-1).topk(ranks)
    return Batch(torch.arange(bs), tokens, logprobs)


def _batch(logprobs: Tensor, seed: int) -> Batch:
    """With tokens that differ within a position, token 0 among them, and recur from one position to the next."""
    bs, positions, ranks = logprobs.shape
    shuffled = torch.rand(bs, positions, ranks + 2, generator=torch.Generator().manual_seed(seed)).argsort(-1)
    return Batch(shuffled[:, 0, 0], shuffled[..., :ranks], logprobs)
