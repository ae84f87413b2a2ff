"""What a DFLASH worker does differently for DDTREE: draft a tree, verify it, hand its accepted path on as a chain.

The worker keeps one :class:`DDTreeRuntime`. A step is:

1. :meth:`DDTreeRuntime.draft`: a tree from the hidden states of one draft forward;
2. :meth:`DDTreeRuntime.verify_fields`: what the target's forward needs to know of it;
3. :func:`linearise`, after that forward: the target's choice at every node, the path that follows the
   choices, and the path's rows as a chain. DFLASH's own verification then accepts, frees, counts and publishes it.

A choice is the target's most probable token, or for a request that samples one draw from the distribution that it
would be drawn from without speculation, by the release's own sampler. Following the draws from the root emits exactly
the target's distribution, whatever the tree is: each emitted token is a draw at its true prefix (SpecInfer,
arXiv 2305.09781, calls it naive sampling; DDTree, arXiv 2604.12989, verifies so).
"""

from __future__ import annotations

import copy
import os
from typing import Any

import torch
from sglang.srt.distributed import get_tp_group
from sglang.srt.layers.logits_processor import LogitsProcessorOutput
from sglang.srt.layers.sampler import apply_custom_logit_processor
from sglang.srt.speculative.ddtree_args import is_on
from sglang.srt.speculative.ddtree_stats import TreeStatistics
from sglang.srt.speculative.ddtree_tree import (
    DraftTree,
    ancestors,
    build_tree,
    chain_of,
    links,
    merge_shards,
    packed_mask,
    shard_candidates,
    top_candidates,
    visibility,
    walk,
)

# Puts the chain that DFLASH would propose into every tree first, so that no step accepts less than DFLASH would.
# Off is the better default: the best-first tree accepts more on the whole.
SPINE_VARIABLE = "SGLANG_DDTREE_SPINE"

_ROWS_AT_ONCE = 64  # of draft logits, each as wide as the vocabulary


class DDTreeRuntime:
    """The tree side of one worker. Ranks of a tensor-parallel group build equal trees and take equal paths."""

    def __init__(self, server_args: Any, target_runner: Any, block_size: int) -> None:
        self.budget = int(server_args.speculative_ddtree_budget)
        self.topk = int(server_args.speculative_ddtree_topk)
        self.width = int(server_args.speculative_num_draft_tokens)
        self.block_size = block_size
        self.spine = is_on(os.environ.get(SPINE_VARIABLE, "0"))
        self.target_runner = target_runner
        self.statistics = TreeStatistics(int(server_args.decode_log_interval), target_runner.device)

    def draft(self, root_tokens: torch.Tensor, hidden: torch.Tensor, lm_head: Any) -> DraftTree:
        """The trees of a batch. `root_tokens` is [bs], `hidden` is [bs, block size - 1, hidden size]."""
        bs, positions, _ = hidden.shape
        rows = hidden.reshape(bs * positions, -1)
        parts = [_candidates(part, lm_head, self.topk) for part in rows.split(_ROWS_AT_ONCE)]
        tokens, logprobs = (torch.cat(part).view(bs, positions, -1) for part in zip(*parts, strict=True))
        return build_tree(root_tokens, tokens, logprobs, self.budget, width=self.width, spine=self.spine)

    def verify_fields(self, tree: DraftTree, seq_lens: torch.Tensor, seq_lens_cpu: torch.Tensor) -> dict[str, Any]:
        """The fields of a verify input. `seq_lens` are the prefix lengths [bs], on the device and on the host."""
        bs, width = tree.tokens.shape
        table = ancestors(tree)
        total = width * (int(seq_lens_cpu.sum()) + bs * width)
        first_child, next_sibling = links(tree)
        return {
            "draft_token": tree.tokens.reshape(-1),
            "positions": (seq_lens.to(torch.int64)[:, None] + tree.depths).reshape(-1),
            "draft_token_num": width,
            "custom_mask": packed_mask(tree, visibility(table), seq_lens, total),
            "retrieve_index": torch.arange(bs * width, device=table.device).view(bs, width),
            "retrieve_next_token": first_child,
            "retrieve_next_sibling": next_sibling,
            "max_tree_depth": tree.max_depth + 1,
            "tree": tree,
            "tree_ancestors": table,
            "runtime": self,
        }

    def choices(self, info: Any, logits: torch.Tensor, positions: torch.Tensor, width: int) -> torch.Tensor:
        """The target's token after every node, int64 [bs * W]. Consumes the logits [bs * W, V].

        `info` are the sampling parameters of the batch, or None for greedy ones; `positions` are those of the nodes.
        """
        if info is None:
            return logits.argmax(dim=-1)
        _adjust(logits, info, width)
        greedy = logits.argmax(dim=-1)
        if info.is_all_greedy:
            return greedy
        drawn = self._draw(info, logits, positions, width)
        return torch.where((info.top_ks == 1).repeat_interleave(width), greedy, drawn)

    def _draw(self, info: Any, logits: torch.Tensor, positions: torch.Tensor, width: int) -> torch.Tensor:
        """One draw a node by the release's own sampler, the same on every rank."""
        drawn = self.target_runner.sampler(
            LogitsProcessorOutput(next_token_logits=logits),
            _repeated(info, width),
            return_logprob=False,
            top_logprobs_nums=[],
            token_ids_logprobs=[],
            positions=positions,
        ).to(torch.int64)
        group = get_tp_group()
        return group.broadcast(drawn, src=0) if group.world_size > 1 else drawn


def linearise(
    verify_input: Any, batch: Any, logits_output: LogitsProcessorOutput
) -> tuple[dict[str, Any], LogitsProcessorOutput]:
    """The accepted path of every request as a chain of D tokens: a chain verify input's fields, and its output.

    The chain's logits leave no choice: each row has one token. The KV slots of the path are put first in
    `batch.out_cache_loc`, [bs * D], so that the chain's commit maps them in order and moves no bytes; the slots of the
    other nodes are freed.
    """
    tree, runtime = verify_input.tree, verify_input.runtime
    bs, width = tree.tokens.shape
    logits = logits_output.next_token_logits
    choices = runtime.choices(batch.sampling_info, logits, verify_input.positions, width).view(bs, width)
    path = walk(tree, verify_input.tree_ancestors, choices)
    verify_input.accepted_path = path
    runtime.statistics.count(tree, path)
    proposed, chosen = chain_of(tree, path, choices)
    length = proposed.shape[1]
    nodes = path.order[:, :length]
    slots = batch.out_cache_loc.view(bs, width).gather(1, path.order)
    batch.token_to_kv_pool_allocator.free(slots[:, length:].reshape(-1))
    batch.out_cache_loc = slots[:, :length].reshape(-1)
    fields = {
        "draft_token": proposed.reshape(-1),
        "positions": verify_input.positions.view(bs, width).gather(1, nodes).reshape(-1),
        "draft_token_num": length,
    }
    return fields, LogitsProcessorOutput(
        next_token_logits=_certain(chosen.reshape(-1), logits),
        hidden_states=_rows_of(logits_output.hidden_states, nodes, width),
    )


def _candidates(hidden: torch.Tensor, lm_head: Any, topk: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The best tokens and their log-probabilities for each row of `hidden`, over the whole vocabulary: [rows, K]."""
    shard = lm_head.shard_indices
    weight = lm_head.weight
    hidden = hidden.to(weight.dtype)
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
    merged: tuple[torch.Tensor, torch.Tensor] = merge_shards(tokens, values, lse, topk)
    return merged


def _gathered(group: Any, part: torch.Tensor) -> torch.Tensor:
    """[ranks, ...] of a tensor that has the same shape on every rank."""
    out = part.new_empty((group.world_size * part.numel(),))
    group.all_gather_into_tensor(out, part.contiguous().view(-1))
    return out.view(group.world_size, *part.shape)


def _adjust(logits: torch.Tensor, info: Any, width: int) -> None:
    """What the release does to logits before it samples, on every node of a request alike.

    Exact for a bias and for processors that look at the logits alone; a request whose penalties depend on the tokens
    before was refused (ddtree_args.validate_ddtree_request).
    """
    if info.logit_bias is not None:
        logits.add_(info.logit_bias.repeat_interleave(width, dim=0))
    if info.has_custom_logit_processor:
        apply_custom_logit_processor(logits, info, num_tokens_in_batch=width)


def _repeated(info: Any, width: int) -> Any:
    """The sampling parameters of every node of every request; what :func:`_adjust` did is not done again."""
    repeated = copy.copy(info)
    for name in ("temperatures", "top_ps", "top_ks", "min_ps", "sampling_seed"):
        value = getattr(info, name, None)
        if value is not None:
            setattr(repeated, name, value.repeat_interleave(width, dim=0))
    repeated.has_custom_logit_processor = False
    repeated.logit_bias = None
    return repeated


def _certain(tokens: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """Logits [rows, V] that leave one token a row: argmax takes it, and so does every draw.

    They are written over the first rows of `logits`, which the walk has consumed and which are large.
    """
    return logits[: tokens.shape[0]].fill_(float("-inf")).scatter_(1, tokens[:, None], 0.0)


def _rows_of(hidden: torch.Tensor | None, nodes: torch.Tensor, width: int) -> torch.Tensor | None:
    """The hidden states [bs * D, ...] of nodes [bs, D], from those of all nodes; DFLASH refuses None."""
    if hidden is None:
        return None
    hidden = hidden.view(-1, width, hidden.shape[-1])
    return hidden.gather(1, nodes[..., None].expand(-1, -1, hidden.shape[-1])).reshape(-1, hidden.shape[-1])
