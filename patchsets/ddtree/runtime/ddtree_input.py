"""What a verify input knows of its tree, and how the tree is laid behind the prefix of each request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from sglang.srt.speculative.ddtree_tree import packed_mask, visibility


@dataclass
class DraftTreeFields:
    """The part of dflash_info.DDTreeVerifyInput that makes a DFLASH input a tree's; W is its `draft_token_num`."""

    # Per request, one after the other: W rows of prefix + W entries, True where the node may attend (the prefix,
    # itself, its ancestors). None until the input is prepared.
    custom_mask: torch.Tensor | None = None
    # Links of the tree as the recurrent and tree-verify kernels read them, [bs, W]; -1 ends a list.
    retrieve_index: torch.Tensor | None = None
    retrieve_next_token: torch.Tensor | None = None
    retrieve_next_sibling: torch.Tensor | None = None
    # The longest path in nodes, the root included; -1 while unknown.
    max_tree_depth: int = -1
    # How many children a node has; -1, as they differ.
    tree_topk: int = -1
    # The tree (ddtree_tree.DraftTree), the ancestors of its nodes, and the worker's ddtree_worker.DDTreeRuntime.
    tree: Any = None
    tree_ancestors: torch.Tensor | None = None
    runtime: Any = None
    # After the verification: the nodes that were accepted (ddtree_tree.Path). The last of them is the node whose
    # recurrent state a hybrid target has to keep.
    accepted_path: Any = None
    # After it, where log-probabilities were asked for: the logits of the accepted path's rows.
    chain_logits: torch.Tensor | None = None

    def mask_tree(self, seq_lens: torch.Tensor, host_lens: torch.Tensor) -> None:
        """Set `custom_mask`. `seq_lens` are the prefix lengths [bs]; `host_lens` are they on the host, or bounds."""
        tree = self._drafted()
        bs, width = tree.tokens.shape
        size = width * (int(host_lens.sum()) + bs * width)
        self.custom_mask = packed_mask(visibility(self.tree_ancestors), seq_lens, size)

    def place_tree(self, batch: Any, target_runner: Any) -> None:
        """From 0.5.14 on: take the W slots behind each prefix, which the scheduler has reserved, and set the mask.

        Writes `batch.out_cache_loc`, [bs * W] in node order. Under overlap scheduling `batch.seq_lens_cpu` is a bound.
        """
        lens, rows = batch.seq_lens, batch.req_pool_indices
        width = self._drafted().tokens.shape[1]
        table = target_runner.req_to_token_pool.req_to_token
        places = lens[:, None] + torch.arange(width, device=table.device)
        batch.out_cache_loc = table[rows[:, None], places].to(torch.int64).reshape(-1)
        host_lens = batch.seq_lens_cpu
        if host_lens is None:
            host_lens = torch.full((len(rows),), table.shape[1])
        self.mask_tree(lens, host_lens.clamp_max(table.shape[1]))
        if hasattr(self, "kv_loc_plan"):  # from 0.5.22 on: what is written where, translated once for all layers
            self.kv_loc_plan = plan_window(target_runner, batch, width)

    def _drafted(self) -> Any:
        """The tree. Raises where there is none."""
        if self.tree is None or self.tree_ancestors is None:
            raise RuntimeError("DDTREE has no tree mask to verify with: a tree would be verified as a chain.")
        if self.retrieve_next_token is None or self.retrieve_next_sibling is None:
            raise RuntimeError("DDTREE has no links to verify with: recurrent layers would take a tree for a chain.")
        return self.tree


def plan_window(target_runner: Any, batch: Any, width: int) -> Any:
    """From 0.5.22 on: where a forward of `width` rows a request reads and writes, in the ids of the target's pool.

    `batch` is a ScheduleBatch or a ForwardBatch, whose `out_cache_loc` are the slots of the rows.
    """
    return target_runner.kv_index_translator.plan(
        req_pool_indices=batch.req_pool_indices,
        seq_lens=batch.seq_lens,
        seq_lens_cpu=batch.seq_lens_cpu,
        write_virtual=batch.out_cache_loc,
        read_extent=width,
    )
