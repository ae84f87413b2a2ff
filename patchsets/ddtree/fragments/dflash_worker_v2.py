"""Goes into ``sglang/srt/speculative/dflash_worker_v2.py``: the bodies, each at the place that its docstring names."""

from __future__ import annotations

from typing import Any

from sglang.srt.runtime_context import get_spec
from sglang.srt.speculative.dflash_info import DDTreeVerifyInput
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm
from sglang.srt.speculative.spec_utils import GrammarTree


def keep_algorithm(self: Any, server_args: Any) -> None:
    """After ``self.server_args = server_args``: the worker knows which algorithm of the DFLASH family it runs."""
    self.speculative_algorithm = SpeculativeAlgorithm.from_string(server_args.speculative_algorithm)


def block_size(self: Any, server_args: Any) -> None:
    """0.5.14 to 0.5.18: after ``self.block_size = int(...speculative_num_draft_tokens)``, which is the verify width."""
    if self.speculative_algorithm.is_ddtree():
        self.block_size = int(server_args.speculative_dflash_block_size)


def published_block_size(self: Any) -> None:
    """From 0.5.19 on: at the same place."""
    if self.speculative_algorithm.is_ddtree():
        self.block_size = int(get_spec().speculative_dflash_block_size)


def all_logits(self: Any) -> None:
    """From 0.5.23 on: first in ``_defer_target_verify_gather``. A tree needs the choice at every node."""
    if self.speculative_algorithm.is_ddtree():
        return


def narrow_attention(self: Any) -> None:
    """After ``self._draft_worker.init_attention_backends()``: the drafter fills a block, the target verifies a tree."""
    if self.speculative_algorithm.is_ddtree():
        from sglang.srt.speculative.ddtree_config import narrow_draft_attention

        narrow_draft_attention(self.draft_model_runner, self.block_size)


def start(self: Any) -> None:
    """Last in ``init_cuda_graphs``, when both models are ready to run."""
    if self.speculative_algorithm.is_ddtree():
        from sglang.srt.speculative.ddtree_start import start_ddtree

        self.ddtree = start_ddtree(self, self.server_args, DDTreeVerifyInput)


def no_draft_sampler(self: Any, _eager: Any) -> Any:
    """From 0.5.15 on: in ``_maybe_build_draft_sampler``. A tree needs the candidates, not the best of them alone."""
    if self.speculative_algorithm.is_ddtree():
        return _eager("DDTREE takes the candidates")


def best_chain(self: Any, hidden_states: Any, lm_head: Any) -> Any:
    """In ``_greedy_sample_from_vocab_parallel_head``: the candidates, and DFLASH's own chain as the best of them."""
    if self.speculative_algorithm.is_ddtree():
        return self.ddtree.best_chain(hidden_states, lm_head)


def verify_tree(self: Any, verify_input: Any, block_ids: Any, prefix_lens: Any) -> None:
    """0.5.14 to 0.5.16: after ``verify_input = DFlashVerifyInput(...)``: a tree, and not the chain, is verified."""
    if self.speculative_algorithm.is_ddtree():
        tree = self.ddtree.draft(block_ids[:, 0])
        verify_input = DDTreeVerifyInput(**self.ddtree.verify_fields(tree, prefix_lens))


def verify_constrained_tree(
    self: Any, verify_input: Any, batch: Any, block_ids: Any, prefix_lens: Any, grammar_tree: Any
) -> None:
    """From 0.5.17 on: at the same place. A grammar follows the branches; its copy begins before the forward."""
    if self.speculative_algorithm.is_ddtree():
        tree = self.ddtree.draft(block_ids[:, 0])
        verify_input = DDTreeVerifyInput(**self.ddtree.verify_fields(tree, prefix_lens))
        grammar_tree = (
            GrammarTree.from_device(
                verify_input.retrieve_next_token,
                verify_input.retrieve_next_sibling,
                verify_input.tree.tokens,
            )
            if batch.has_grammar
            else None
        )


def adjust_logits(self: Any, logits_output: Any, sampling_info: Any) -> None:
    """After ``logits_output = target_out.logits_output``: what DFLASH would do to a block's rows, on every node's.

    Without sampling parameters its verification takes the best token of each row, of which there will be one.
    """
    if self.speculative_algorithm.is_ddtree():
        self.ddtree.adjust(logits_output.next_token_logits, sampling_info)
        sampling_info = None


def accept_tree(self: Any, verify_input: Any, batch: Any, logits_output: Any, draft_tokens: Any) -> None:
    """From 0.5.15 on: before ``candidates = draft_tokens``: the accepted path is the block that DFLASH verifies."""
    if self.speculative_algorithm.is_ddtree():
        from sglang.srt.speculative.ddtree_worker import linearise_in_window

        draft_tokens = linearise_in_window(verify_input, batch, logits_output)


def accept_tree_of_worker_batch(
    self: Any, verify_input: Any, model_worker_batch: Any, logits_output: Any, draft_tokens: Any
) -> None:
    """0.5.14: at the same place, where the batch has another name."""
    if self.speculative_algorithm.is_ddtree():
        from sglang.srt.speculative.ddtree_worker import linearise_in_window

        draft_tokens = linearise_in_window(verify_input, model_worker_batch, logits_output)


def show_logits(self: Any, verify_input: Any, batch: Any, logits_output: Any) -> None:
    """From 0.5.18 on: before ``if batch.return_logprob``: the path's own logits are those that are reported."""
    if self.speculative_algorithm.is_ddtree() and batch.return_logprob:
        logits_output.next_token_logits = verify_input.chain_logits


def last_steps(self: Any, last_correct_step_indices: Any, mamba_steps_to_track: Any) -> None:
    """Before ``attn_backend.update_mamba_state_after_mtp_verify(...)``: nodes, not depths."""
    if self.speculative_algorithm.is_ddtree():
        last_correct_step_indices, mamba_steps_to_track = self.ddtree.nodes_of(
            last_correct_step_indices, mamba_steps_to_track
        )
