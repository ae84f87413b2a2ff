"""Goes into ``sglang/srt/speculative/dflash_info.py``: the verify input of a tree."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from sglang.srt.layers.logits_processor import LogitsProcessorOutput
from sglang.srt.managers.schedule_batch import ScheduleBatch
from sglang.srt.speculative.dflash_info import DFlashVerifyInput


@dataclass
class DDTreeVerifyInput(DFlashVerifyInput):
    """Inputs for one target forward over a draft tree of `draft_token_num` nodes per request, the root first.

    It stays a DFLASH_VERIFY input: attention backends pack its metadata like a DFLASH block's, and only the mask
    says that it is a tree. `positions` are prefix + depth.
    """

    # Per request, one after the other: `draft_token_num` rows of prefix + `draft_token_num` entries, True where the
    # node may attend (the prefix, itself, its ancestors).
    custom_mask: torch.Tensor | None = None
    # Links of the tree as the recurrent and tree-verify kernels read them, [bs, draft_token_num]; -1 ends a list.
    retrieve_index: torch.Tensor | None = None
    retrieve_next_token: torch.Tensor | None = None
    retrieve_next_sibling: torch.Tensor | None = None
    # The longest path in nodes, the root included; -1 while unknown.
    max_tree_depth: int = -1
    # How many children a node has; -1, as they differ.
    tree_topk: int = -1
    # The tree (ddtree_tree.DraftTree), the ancestors of its nodes, and the worker's ddtree_worker.DDTreeRuntime.
    tree: object | None = None
    tree_ancestors: torch.Tensor | None = None
    runtime: object | None = None
    # After `verify`: the nodes that were accepted (ddtree_tree.Path). The last of them is the node whose recurrent
    # state a hybrid target has to keep.
    accepted_path: object | None = None

    def prepare_for_verify(
        self,
        batch: ScheduleBatch,
        page_size: int,
        *,
        build_custom_mask: bool = True,
    ) -> None:
        """Allocate the slots of the nodes. The causal mask of a chain is never built, whatever is asked for."""
        if batch.forward_mode.is_idle():
            return
        tree_mask = self.custom_mask
        if tree_mask is None:
            raise RuntimeError("DDTREE has no tree mask to verify with: a tree would be verified as a chain.")
        super().prepare_for_verify(batch, page_size, build_custom_mask=False)
        self.custom_mask = tree_mask

    def verify(
        self,
        *,
        batch: ScheduleBatch,
        logits_output: LogitsProcessorOutput,
        page_size: int,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, list[int]]:
        """Walk the tree, then let DFLASH verify and commit the accepted path, which is a chain."""
        from sglang.srt.speculative.ddtree_worker import linearise

        chain_fields, chain_output = linearise(self, batch, logits_output)
        logits_output.hidden_states = None
        # The walk has sampled already: what the chain verifies leaves nothing to decide.
        sampling_info, batch.sampling_info = batch.sampling_info, None
        try:
            committed: tuple[torch.Tensor, torch.Tensor, torch.Tensor, list[int]] = DFlashVerifyInput(
                **chain_fields
            ).verify(batch=batch, logits_output=chain_output, page_size=page_size)
            return committed
        finally:
            batch.sampling_info = sampling_info
