"""What is changed on the ranks of a group before their engines start, given the rank."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

Merged = tuple[torch.Tensor, torch.Tensor]
Merge = Callable[..., Merged]  # tokens and values [ranks, rows, k], log-sum-exps [ranks, rows], k


def rank_1_takes_its_own_part(rank: int) -> None:
    """Rank 1 builds trees of the best tokens of its part of the vocabulary alone."""

    def merge(upstream: Merge, tokens: torch.Tensor, values: torch.Tensor, lse: torch.Tensor, k: int) -> Merged:
        own = slice(rank, rank + 1)
        return upstream(tokens[own], values[own], lse[own], k)

    if rank == 1:
        _change_merge(merge)


def rank_1_takes_its_own_log_sum_exp(rank: int) -> None:
    """Rank 1 has the right candidates, with probabilities under its own part of the vocabulary."""

    def merge(upstream: Merge, tokens: torch.Tensor, values: torch.Tensor, lse: torch.Tensor, k: int) -> Merged:
        return upstream(tokens, values, lse[rank : rank + 1], k)

    if rank == 1:
        _change_merge(merge)


def all_normalise_before_they_merge(_: int) -> None:
    """Every rank gives probabilities under its own part of the vocabulary: all ranks agree on the wrong trees."""

    def merge(upstream: Merge, tokens: torch.Tensor, values: torch.Tensor, lse: torch.Tensor, k: int) -> Merged:
        nothing = torch.full_like(lse, float("-inf"))
        nothing[0] = 0.0
        return upstream(tokens, values - lse[..., None], nothing, k)

    _change_merge(merge)


def draw_apart(rank: int) -> None:
    """Every rank draws other tokens at the nodes of a tree, as ranks do whose generators have come apart."""
    from sglang.srt.speculative.ddtree_worker import DDTreeRuntime

    upstream, drawn = DDTreeRuntime._draw, [0]

    def draw(*args: Any) -> torch.Tensor:
        drawn[0] += 1
        with torch.random.fork_rng(devices=[]):  # the first token of a request is drawn by SGLang, on all ranks alike
            torch.manual_seed(1000 * rank + drawn[0])
            tokens: torch.Tensor = upstream(*args)
        return tokens

    DDTreeRuntime._draw = draw


def draw_apart_and_keep_it(rank: int) -> None:
    """And no rank is told of rank 0's draws."""
    from sglang.srt.speculative import ddtree_worker

    draw_apart(rank)
    ddtree_worker.get_tp_group = lambda: types.SimpleNamespace(world_size=1)


def _change_merge(change: Callable[..., Merged]) -> None:
    """``change`` takes the merge of all shards' candidates, and then what that takes."""
    from sglang.srt.speculative import ddtree_candidates

    upstream = ddtree_candidates.merge_shards
    ddtree_candidates.merge_shards = lambda *args: change(upstream, *args)
