"""Faults that are planted into a running engine, to prove that the checks see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from ddtree_patch_probe.engine import Engine


def show_a_sibling(engine: Engine) -> None:
    """The mask lets every node attend to the node before it in the tree, whoever's child that is."""
    runtime = engine.worker.ddtree
    upstream = runtime.verify_fields

    def verify_fields(tree: Any, seq_lens: torch.Tensor, seq_lens_cpu: torch.Tensor) -> dict[str, Any]:
        fields = upstream(tree, seq_lens, seq_lens_cpu)
        width, start = tree.tokens.shape[1], 0
        for length in seq_lens_cpu.tolist():
            end = start + width * (length + width)
            rows = fields["custom_mask"][start:end].view(width, length + width)
            rows[range(1, width), range(length, length + width - 1)] = True
            start = end
        return fields

    runtime.verify_fields = verify_fields


def keep_tree_order(engine: Engine) -> None:
    """The KV slots of the accepted nodes are committed in the order of the tree, and not in that of the path."""

    def spoil(verify_input: Any, batch: Any, rows: torch.Tensor, result: Any) -> None:
        order = verify_input.accepted_path.order[:, : result[0]["draft_token_num"]]
        slots = batch.out_cache_loc.view(order.shape)
        batch.out_cache_loc = slots.gather(1, order.argsort(dim=1)).flip(1).reshape(-1)

    _spoil_linearise(spoil)


def shift_hidden_rows(engine: Engine) -> None:
    """The drafter is given the hidden states of the first nodes of the tree, and not those of the accepted path."""

    def spoil(verify_input: Any, batch: Any, rows: torch.Tensor, result: Any) -> None:
        fields, output = result
        output.hidden_states = rows[:, : fields["draft_token_num"]].reshape(-1, rows.shape[-1])

    _spoil_linearise(spoil)


def _spoil_linearise(spoil: Callable[[Any, Any, torch.Tensor, Any], None]) -> None:
    """``spoil`` takes the tree's hidden states too, [bs, W, H], as they were before."""
    from sglang.srt.speculative import ddtree_worker

    upstream = ddtree_worker.linearise

    def linearise(verify_input: Any, batch: Any, logits_output: Any) -> Any:
        rows = logits_output.hidden_states.view(*verify_input.tree.tokens.shape, -1).clone()
        result = upstream(verify_input, batch, logits_output)
        spoil(verify_input, batch, rows, result)
        return result

    ddtree_worker.linearise = linearise


def keep_a_rejected_slot(engine: Engine) -> None:
    """One KV slot of every batch is not given back."""
    _change_frees(engine, lambda slots: slots[1:])


def free_a_slot_twice(engine: Engine) -> None:
    _change_frees(engine, lambda slots: torch.cat([slots, slots[:1]]))


def accept_a_sibling(engine: Engine) -> None:
    """The walk takes a wrong token at the root of every tree: the least probable one."""
    runtime = engine.worker.ddtree
    upstream = runtime.choices

    def choices(info: Any, logits: torch.Tensor, positions: torch.Tensor, width: int) -> torch.Tensor:
        chosen = upstream(info, logits.clone(), positions, width)
        chosen[::width] = logits[::width].argmin(dim=-1)
        return chosen

    runtime.choices = choices


def ignore_siblings(engine: Engine) -> None:
    """A tree of which only the most probable chain is filled: right tokens, no gain."""
    runtime = engine.worker.ddtree
    runtime.topk = 1


def _change_frees(engine: Engine, change: Any) -> None:
    allocator = engine.pools.allocator
    upstream = allocator.free
    allocator.free = lambda slots: upstream(change(slots) if slots.numel() > 1 else slots)
