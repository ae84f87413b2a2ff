"""Goes into ``sglang/srt/speculative/dflash_worker.py``: the bodies, each at the statement that its docstring names."""

from __future__ import annotations

from typing import Any

from sglang.srt.model_executor.forward_batch_info import ForwardMode
from sglang.srt.speculative.dflash_info import DDTreeVerifyInput
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm


def keep_algorithm(self: Any, server_args: Any) -> None:
    """After ``self.server_args = server_args``: the worker knows which algorithm of the DFLASH family it runs."""
    self.speculative_algorithm = SpeculativeAlgorithm.from_string(server_args.speculative_algorithm)


def draft_width(self: Any, draft_server_args: Any) -> None:
    """After ``draft_server_args = deepcopy(server_args)``: the drafter fills a block, the target verifies a tree."""
    if self.speculative_algorithm.is_ddtree():
        draft_server_args.speculative_num_draft_tokens = draft_server_args.speculative_dflash_block_size


def block_size(self: Any, server_args: Any) -> None:
    """After ``self.block_size = int(server_args.speculative_num_draft_tokens)``, which is the verify width."""
    if self.speculative_algorithm.is_ddtree():
        self.block_size = int(server_args.speculative_dflash_block_size)


def start(self: Any, server_args: Any) -> None:
    """Last in ``__init__``, when both models are ready to run."""
    if self.speculative_algorithm.is_ddtree():
        from sglang.srt.speculative.ddtree_start import start_ddtree

        self.ddtree = start_ddtree(self, server_args, DDTreeVerifyInput)


def prepare_verify(self: Any, batch: Any, block_ids: Any, draft_hidden: Any, lm_head: Any) -> None:
    """After ``draft_hidden = draft_hidden.view(...)``: DFLASH would draft a chain from here on."""
    if self.speculative_algorithm.is_ddtree():
        self.ddtree.best_chain(draft_hidden[:, 1:].reshape(-1, draft_hidden.shape[-1]), lm_head)
        tree = self.ddtree.draft(block_ids[:, 0])
        verify_input = DDTreeVerifyInput(**self.ddtree.verify_fields(tree, batch.seq_lens))
        verify_input.prepare_for_verify(batch, self.page_size)
        batch.forward_mode = ForwardMode.TARGET_VERIFY
        batch.spec_info = verify_input
        batch.return_hidden_states = False
        return


def accepted_steps(self: Any, accepted_steps: Any, mamba_steps_to_track: Any) -> None:
    """0.5.11: before ``attn_backend.update_mamba_state_after_mtp_verify(...)``: nodes, not depths."""
    if self.speculative_algorithm.is_ddtree():
        accepted_steps, mamba_steps_to_track = self.ddtree.nodes_of(accepted_steps, mamba_steps_to_track)


def last_steps(self: Any, last_correct_step_indices: Any, mamba_steps_to_track: Any) -> None:
    """0.5.12 to 0.5.13.post1: at the same place."""
    if self.speculative_algorithm.is_ddtree():
        last_correct_step_indices, mamba_steps_to_track = self.ddtree.nodes_of(
            last_correct_step_indices, mamba_steps_to_track
        )
