"""Goes into ``sglang/srt/speculative/dflash_info.py`` of 0.5.11 to 0.5.13.post1: the verify input of a tree."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from sglang.srt.layers.logits_processor import LogitsProcessorOutput
from sglang.srt.managers.schedule_batch import ScheduleBatch
from sglang.srt.speculative.ddtree_input import DraftTreeFields
from sglang.srt.speculative.dflash_info import DFlashVerifyInput


@dataclass
class DDTreeVerifyInput(DraftTreeFields, DFlashVerifyInput):
    """Inputs for one target forward over a draft tree of `draft_token_num` nodes per request, the root first.

    It stays a DFLASH_VERIFY input: attention backends pack its metadata like a DFLASH block's, and only the mask
    says that it is a tree. `positions` are prefix + depth.
    """

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
        super().prepare_for_verify(batch, page_size, build_custom_mask=False)
        self.mask_tree(batch.seq_lens, batch.seq_lens_cpu)

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
