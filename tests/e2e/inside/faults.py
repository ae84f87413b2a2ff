"""Faults that are planted into an engine, to prove that the checks see them.

Those that take None too may be planted before it starts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from ddtree_patch_probe.engine import Engine


def show_a_sibling(_: Engine | None) -> None:
    """The mask lets every node attend to the node before it in the tree, whoever's child that is."""
    _change_visibility(lambda seen: seen | torch.ones_like(seen).tril().triu(-1))


def verify_as_a_chain(_: Engine | None) -> None:
    """The mask is causal in the order of the nodes."""
    _change_visibility(lambda seen: torch.ones_like(seen).tril())


def ignore_the_mask(_: Engine | None) -> None:
    """Every node sees every node."""
    _change_visibility(torch.ones_like)


def hide_ancestors(_: Engine | None) -> None:
    """A node sees the prefix and itself."""
    _change_visibility(lambda seen: torch.eye(seen.shape[1], dtype=torch.bool).expand_as(seen))


def read_a_rectangle(_: Engine | None) -> None:
    """The mask is laid out as if every prefix were as long as the longest."""

    def change(mask: torch.Tensor, width: int, prefix_lens: torch.Tensor, size: int) -> torch.Tensor:
        longest, rows, start = int(prefix_lens.max()), [], 0
        for length in prefix_lens.tolist():
            end = start + width * (length + width)
            request = mask[start:end].view(width, length + width)
            rows.append(torch.nn.functional.pad(request, (0, longest - length)).reshape(-1))
            start = end
        return torch.cat([*rows, mask.new_ones(size)])[:size]

    _change_masks(change)


def count_from_the_first_prefix(_: Engine | None) -> None:
    """The positions of every tree are counted from the end of the first request's prefix."""
    from sglang.srt.speculative.ddtree_worker import DDTreeRuntime

    upstream = DDTreeRuntime.verify_fields

    def verify_fields(runtime: Any, tree: Any, seq_lens: torch.Tensor) -> dict[str, Any]:
        positions = (seq_lens[:1, None] + tree.depths).reshape(-1)
        return {**upstream(runtime, tree, seq_lens), "positions": positions}

    DDTreeRuntime.verify_fields = verify_fields


def _change_visibility(change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """``change`` takes and gives which nodes a node attends to, bool [bs, W, W]."""
    from sglang.srt.speculative import ddtree_input

    upstream = ddtree_input.visibility
    ddtree_input.visibility = lambda table: change(upstream(table))


def _change_masks(change: Callable[[torch.Tensor, int, torch.Tensor, int], torch.Tensor]) -> None:
    """``change`` takes the packed mask, W, the prefix lengths and the mask's size, and gives a mask of that size."""
    from sglang.srt.speculative import ddtree_input

    upstream = ddtree_input.packed_mask

    def packed_mask(seen: torch.Tensor, prefix_lens: torch.Tensor, size: int) -> torch.Tensor:
        return change(upstream(seen, prefix_lens, size), seen.shape[1], prefix_lens, size)

    ddtree_input.packed_mask = packed_mask


def keep_tree_order(_: Engine) -> None:
    """The KV of the accepted nodes is committed in the order of the tree, and not in that of the path."""
    from sglang.srt.speculative import ddtree_worker

    if hasattr(ddtree_worker, "_move_to_front"):
        ddtree_worker._move_to_front = lambda *_: None

    def spoil(verify_input: Any, batch: Any, hidden: torch.Tensor, rows: torch.Tensor) -> None:
        length = hidden.shape[1]
        if batch.out_cache_loc.numel() == len(rows) * length:  # the slots of the path alone
            order = verify_input.accepted_path.order[:, :length]
            slots = batch.out_cache_loc.view(order.shape)
            batch.out_cache_loc = slots.gather(1, order.argsort(dim=1)).flip(1).reshape(-1)

    _spoil_linearise(spoil)


def shift_hidden_rows(_: Engine) -> None:
    """The drafter is given the hidden states of the first nodes of the tree, and not those of the accepted path."""
    _spoil_linearise(lambda verify_input, batch, hidden, rows: hidden.copy_(rows[:, : hidden.shape[1]]))


def keep_a_bonus_row(_: Engine) -> None:
    """The drafter is given, for the last accepted node, the hidden state of a node that was not accepted."""

    def spoil(verify_input: Any, batch: Any, hidden: torch.Tensor, rows: torch.Tensor) -> None:
        path, requests = verify_input.accepted_path, torch.arange(len(rows))
        rejected = path.order[requests, path.lengths.clamp_max(rows.shape[1] - 1)]
        hidden[requests, path.lengths - 1] = rows[requests, rejected]

    _spoil_linearise(spoil)


def _spoil_linearise(spoil: Callable[[Any, Any, torch.Tensor, torch.Tensor], object]) -> None:
    """``spoil`` takes the input, the batch, the hidden states of the path [bs, D, H] and of the tree [bs, W, H]."""
    from sglang.srt.speculative import ddtree_worker

    for name in ("linearise", "linearise_in_window"):
        _spoil_one(ddtree_worker, name, spoil)


def _spoil_one(module: Any, name: str, spoil: Callable[[Any, Any, torch.Tensor, torch.Tensor], object]) -> None:
    upstream = getattr(module, name)

    def linearise(verify_input: Any, batch: Any, logits_output: Any) -> Any:
        bs, width = verify_input.tree.tokens.shape
        rows = logits_output.hidden_states.view(bs, width, -1).clone()
        result = upstream(verify_input, batch, logits_output)
        output = result[1] if isinstance(result, tuple) else logits_output
        spoil(verify_input, batch, output.hidden_states.view(bs, -1, rows.shape[-1]), rows)
        return result

    setattr(module, name, linearise)


def keep_a_rejected_slot(engine: Engine) -> None:
    """One KV slot of every batch is not given back."""
    _change_frees(engine, lambda slots: slots[1:])


def free_a_slot_twice(engine: Engine) -> None:
    _change_frees(engine, lambda slots: torch.cat([slots, slots[:1]]))


def accept_a_sibling(engine: Engine) -> None:
    """The walk takes a wrong token at the root of every tree: the least probable one."""
    runtime = engine.worker.ddtree
    upstream = runtime.choices

    def choices(info: Any, logits: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        least = logits[:: runtime.width].argmin(dim=-1)
        chosen: torch.Tensor = upstream(info, logits, positions)
        chosen[:, 0] = least
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
