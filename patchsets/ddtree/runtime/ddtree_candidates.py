"""The drafter's candidates: the most probable tokens of every drafted position under the target's own head.

Every rank of a tensor-parallel group owns a part of the vocabulary. What leaves a rank are its best K tokens and its
log-sum-exp, so that all ranks get the same candidates and build the same trees.
"""

from __future__ import annotations

from typing import Any

import torch
from sglang.srt.distributed import get_tp_group
from sglang.srt.speculative.ddtree_tree import merge_shards, shard_candidates, top_candidates

Candidates = tuple[torch.Tensor, torch.Tensor]  # tokens and their log-probabilities

_ROWS_AT_ONCE = 64  # of draft logits, each as wide as the vocabulary
_DENSE = (torch.float16, torch.bfloat16, torch.float32)


def head_candidates(hidden: torch.Tensor, lm_head: Any, topk: int) -> Candidates:
    """The best tokens and their log-probabilities for each row of `hidden`, over the whole vocabulary.

    `hidden` is [rows, hidden size]. Returns int64 and float32 [rows, K], best first.
    """
    parts = [_candidates(part, lm_head, topk) for part in hidden.split(_ROWS_AT_ONCE)]
    tokens, logprobs = (torch.cat(part) for part in zip(*parts, strict=True))
    return tokens, logprobs


def _candidates(hidden: torch.Tensor, lm_head: Any, topk: int) -> Candidates:
    weight = getattr(lm_head, "weight", None)
    if not isinstance(weight, torch.Tensor) or weight.dtype not in _DENSE:
        # A quantised head has no matrix to take parts of; DFLASH serves it on one rank only, and so does DDTREE.
        best: Candidates = top_candidates(_quantised_logits(hidden, lm_head), topk)
    elif not hasattr(lm_head, "shard_indices"):
        best = top_candidates(hidden.to(weight.dtype) @ weight.T, topk)
    else:
        best = _of_all_shards(hidden.to(weight.dtype), weight, lm_head.shard_indices, topk)
    return best


def _of_all_shards(hidden: torch.Tensor, weight: torch.Tensor, shard: Any, topk: int) -> Candidates:
    base = slice(0, int(shard.num_org_elements))
    added_start = int(shard.num_org_elements_padded)
    added = slice(added_start, added_start + int(shard.num_added_elements))
    logits = torch.cat([hidden @ weight[part].T for part in (base, added)], dim=-1)

    def token_ids(columns: torch.Tensor) -> torch.Tensor:
        is_base = columns < base.stop
        first = torch.where(is_base, int(shard.org_vocab_start_index), int(shard.added_vocab_start_index) - base.stop)
        return columns + first

    group = get_tp_group()
    if group.world_size == 1:
        columns, logprobs = top_candidates(logits, topk)
        return token_ids(columns), logprobs
    columns, values, lse = shard_candidates(logits, topk)
    tokens, values, lse = (_gathered(group, part) for part in (token_ids(columns), values, lse))
    merged: Candidates = merge_shards(tokens, values, lse, topk)
    return merged


def _quantised_logits(hidden: torch.Tensor, lm_head: Any) -> torch.Tensor:
    """Logits [rows, V] without the rows that pad the vocabulary."""
    if get_tp_group().world_size != 1:
        raise RuntimeError(
            "DDTREE with a quantised lm_head of the target works on one rank alone, as DFLASH does. Use --tp-size 1."
        )
    logits: torch.Tensor = lm_head.quant_method.apply(lm_head, hidden, None)
    size = int(getattr(lm_head, "org_vocab_size", 0)) or logits.shape[-1]
    return logits[:, :size]


def _gathered(group: Any, part: torch.Tensor) -> torch.Tensor:
    """[ranks, ...] of a tensor that has the same shape on every rank."""
    out = part.new_empty((group.world_size * part.numel(),))
    group.all_gather_into_tensor(out, part.contiguous().view(-1))
    return out.view(group.world_size, *part.shape)
