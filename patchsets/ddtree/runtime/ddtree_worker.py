"""What a DFLASH worker does differently for DDTREE: draft a tree, verify it, hand its accepted path on as a chain.

The worker keeps one :class:`DDTreeRuntime`. A step is:

1. :meth:`DDTreeRuntime.draft`: a tree from the hidden states of one draft forward;
2. :meth:`DDTreeRuntime.verify_fields`: what the target's forward needs to know of it;
3. after that forward the target's choice at every node, the path that follows the choices, and the path's rows as a
   chain. DFLASH's own verification then accepts, counts and publishes it. :func:`linearise` does that where DFLASH
   allocates and frees slots in the step (to 0.5.13.post1), :func:`linearise_in_window` where the scheduler has
   reserved a window of slots (from 0.5.14 on), in which the accepted nodes' keys and values move to the front.

Nothing here waits for the device: under overlap scheduling the host prepares the next step meanwhile.

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
from sglang.srt.speculative.ddtree_candidates import head_candidates
from sglang.srt.speculative.ddtree_config import spec_config
from sglang.srt.speculative.ddtree_stats import TreeStatistics
from sglang.srt.speculative.ddtree_tree import DraftTree, Path, ancestors, build_tree, chain_of, links, nodes_at, walk

# Puts the chain that DFLASH would propose into every tree first, so that no step accepts less than DFLASH would.
# Off is the better default: the best-first tree accepts more on the whole.
SPINE_VARIABLE = "SGLANG_DDTREE_SPINE"


class DDTreeRuntime:
    """The tree side of one worker. Ranks of a tensor-parallel group build equal trees and take equal paths."""

    def __init__(self, server_args: Any, target_runner: Any, block_size: int) -> None:
        spec = spec_config(server_args)
        self.budget = int(spec.speculative_ddtree_budget)
        self.topk = int(spec.speculative_ddtree_topk)
        self.width = int(spec.speculative_num_draft_tokens)
        self.block_size = block_size
        self.spine = is_on(os.environ.get(SPINE_VARIABLE, "0"))
        self.target_runner = target_runner
        self.statistics = TreeStatistics(int(server_args.decode_log_interval), target_runner.device)
        self._candidates: tuple[torch.Tensor, torch.Tensor] | None = None
        self._accepted: Path | None = None  # until the states of its nodes are kept, where the target has any

    def best_chain(self, hidden: torch.Tensor, lm_head: Any) -> torch.Tensor:
        """Find the candidates of every drafted position; the best of each, int64 [rows], is what DFLASH proposes.

        `hidden` is [bs * (block size - 1), hidden size]. The candidates are kept until the tree is built of them.
        """
        self._candidates = head_candidates(hidden, lm_head, self.topk)
        return self._candidates[0][:, 0]

    def draft(self, root_tokens: torch.Tensor) -> DraftTree:
        """The trees of a batch, from the candidates that :meth:`best_chain` found. `root_tokens` is [bs]."""
        if self._candidates is None:
            raise RuntimeError("DDTREE: the drafter's candidates were not taken: no tree can be built.")
        tokens, logprobs = (part.view(len(root_tokens), self.block_size - 1, -1) for part in self._candidates)
        self._candidates = None
        return build_tree(root_tokens, tokens, logprobs, self.budget, width=self.width, spine=self.spine)

    def verify_fields(self, tree: DraftTree, seq_lens: torch.Tensor) -> dict[str, Any]:
        """The fields of a verify input, but for the mask. `seq_lens` are the prefix lengths [bs]."""
        bs, width = tree.tokens.shape
        first_child, next_sibling = links(tree)
        return {
            "draft_token": tree.tokens.reshape(-1),
            "positions": (seq_lens.to(torch.int64)[:, None] + tree.depths).reshape(-1),
            "draft_token_num": width,
            "retrieve_index": torch.arange(bs * width, device=tree.tokens.device).view(bs, width),
            "retrieve_next_token": first_child,
            "retrieve_next_sibling": next_sibling,
            "max_tree_depth": tree.max_depth + 1,
            "tree": tree,
            "tree_ancestors": ancestors(tree),
            "runtime": self,
        }

    def adjust(self, logits: torch.Tensor, info: Any) -> None:
        """What the release does to logits [bs * W, V] before it samples, on every node of a request alike.

        Exact for a bias and for processors that look at the logits alone; a request whose penalties depend on the
        tokens before was refused (ddtree_args.validate_ddtree_request). `info` are the sampling parameters of the
        batch, or None for greedy ones.
        """
        if info is None:
            return
        if info.logit_bias is not None:
            logits.add_(info.logit_bias.repeat_interleave(self.width, dim=0))
        if info.has_custom_logit_processor:
            apply_custom_logit_processor(logits, info, num_tokens_in_batch=self.width)

    def choices(self, info: Any, logits: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """The target's token after every node, int64 [bs, W], from adjusted logits [bs * W, V], which it may consume.

        `positions` are those of the nodes.
        """
        greedy = logits.argmax(dim=-1)
        if info is not None and not info.is_all_greedy:
            drawn = self._draw(info, logits, positions)
            greedy = torch.where((info.top_ks == 1).repeat_interleave(self.width), greedy, drawn)
        return greedy.view(-1, self.width)

    def accept(self, verify_input: Any, choices: torch.Tensor) -> Path:
        """The path that follows the choices, counted."""
        path = walk(verify_input.tree, verify_input.tree_ancestors, choices)
        verify_input.accepted_path = self._accepted = path
        self.statistics.count(verify_input.tree, path)
        return path

    def nodes_of(self, last: torch.Tensor, tracked: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The nodes whose recurrent states are kept, int64 [bs] each, from their depths on the accepted path.

        `last` are the depths of the last accepted nodes. `tracked` are those of the nodes whose states go into the
        radix cache, negative for requests without one; None where nothing is tracked.
        """
        if self._accepted is None:
            raise RuntimeError("DDTREE: no path was accepted: which recurrent states to keep is not known.")
        path, self._accepted = self._accepted, None
        return nodes_at(path, last), None if tracked is None else nodes_at(path, tracked)

    def _draw(self, info: Any, logits: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """One draw a node by the release's own sampler, the same on every rank."""
        drawn = self.target_runner.sampler(
            LogitsProcessorOutput(next_token_logits=logits),
            _repeated(info, self.width),
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
    logits = logits_output.next_token_logits
    runtime.adjust(logits, batch.sampling_info)
    choices = runtime.choices(batch.sampling_info, logits, verify_input.positions)
    path = runtime.accept(verify_input, choices)
    proposed, chosen = chain_of(tree, path, choices)
    bs, length = proposed.shape
    nodes = path.order[:, :length]
    slots = batch.out_cache_loc.view(bs, -1).gather(1, path.order)
    batch.token_to_kv_pool_allocator.free(slots[:, length:].reshape(-1))
    batch.out_cache_loc = slots[:, :length].reshape(-1).contiguous()
    fields = {
        "draft_token": proposed.reshape(-1),
        "positions": verify_input.positions.view(bs, -1).gather(1, nodes).reshape(-1),
        "draft_token_num": length,
    }
    return fields, LogitsProcessorOutput(
        next_token_logits=_certain(chosen.reshape(-1), logits),
        hidden_states=_rows_of(logits_output.hidden_states, nodes),
    )


def linearise_in_window(verify_input: Any, batch: Any, logits_output: LogitsProcessorOutput) -> torch.Tensor:
    """The accepted path of every request as the block that DFLASH verifies next: its tokens, int64 [bs, block size].

    `logits_output` becomes the block's, in place: logits that leave one token a row, and the path's hidden states. The
    path's keys and values move to the front of each window, `batch.out_cache_loc` [bs * W]. The logits must be adjusted
    and masked already; where log-probabilities are wanted, the path's rows of them are kept in the input.
    """
    tree, runtime = verify_input.tree, verify_input.runtime
    info, logits = batch.sampling_info, logits_output.next_token_logits
    kept = None
    if batch.return_logprob:  # a sampler may work in the logits' own memory
        kept = logits if info is None or info.is_all_greedy else logits.clone()
    choices = runtime.choices(info, logits, verify_input.positions)
    path = runtime.accept(verify_input, choices)
    proposed, chosen = chain_of(tree, path, choices, runtime.block_size)
    nodes = path.order[:, : runtime.block_size]
    _move_to_front(batch.out_cache_loc.view_as(tree.tokens), path, tree.max_depth + 1, runtime.target_runner)
    verify_input.chain_logits = _rows_of(kept, nodes)
    logits_output.hidden_states = _rows_of(logits_output.hidden_states, nodes)
    logits_output.next_token_logits = _certain(chosen.reshape(-1), logits)
    return proposed


def _move_to_front(slots: torch.Tensor, path: Path, longest: int, target_runner: Any) -> None:
    """Move what the accepted nodes wrote to the first slots of each window, by the pool's own mover.

    `slots` is [bs, W] in node order. The root is in its place. A node's index is at least its depth, so that no slot is
    overwritten before it was read, in whatever parts the pool moves them; what was not accepted moves onto itself.
    Kernels that move them read a list as it lies in memory, without its strides.
    """
    if longest < 2:
        return
    front = slots[:, 1:longest].contiguous()
    source = slots.gather(1, path.order[:, 1:longest])
    is_accepted = torch.arange(1, longest, device=slots.device) < path.lengths[:, None]
    source = torch.where(is_accepted, source, front)
    target_runner.token_to_kv_pool_allocator.get_kvcache().move_kv_cache(front.reshape(-1), source.reshape(-1))


def _repeated(info: Any, width: int) -> Any:
    """The sampling parameters of every node of every request; what was done to the logits is not done again."""
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


def _rows_of(rows: torch.Tensor | None, nodes: torch.Tensor) -> torch.Tensor | None:
    """The rows [bs * L, ...] of nodes [bs, L], from those of all nodes [bs * W, ...]; None where there are none."""
    if rows is None:
        return None
    first = torch.arange(len(nodes), device=nodes.device)[:, None] * (rows.shape[0] // len(nodes))
    return rows.index_select(0, (first + nodes).reshape(-1))
