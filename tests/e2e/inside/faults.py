"""Faults that are planted into an engine, to prove that the checks see them.

Those that take None too may be planted before it starts.
"""

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


def verify_as_a_chain(_: Engine | None) -> None:
    """The mask is causal in the order of the nodes."""
    _change_visibility(lambda seen: torch.ones_like(seen).tril())


def ignore_the_mask(_: Engine | None) -> None:
    """Every node sees every node."""
    _change_visibility(torch.ones_like)


def show_the_node_before(_: Engine | None) -> None:
    """As ``show_a_sibling``, before an engine starts."""
    _change_visibility(lambda seen: seen | torch.ones_like(seen).tril().triu(-1))


def hide_ancestors(_: Engine | None) -> None:
    """A node sees the prefix and itself."""
    _change_visibility(lambda seen: torch.eye(seen.shape[1], dtype=torch.bool).expand_as(seen))


def read_a_rectangle(_: Engine | None) -> None:
    """The mask is laid out as if every prefix were as long as the longest."""

    def change(mask: torch.Tensor, tree: Any, prefix_lens: torch.Tensor, total: int) -> torch.Tensor:
        width, longest, rows, start = tree.tokens.shape[1], int(prefix_lens.max()), [], 0
        for length in prefix_lens.tolist():
            end = start + width * (length + width)
            request = mask[start:end].view(width, length + width)
            rows.append(torch.nn.functional.pad(request, (0, longest - length)).reshape(-1))
            start = end
        return torch.cat(rows)[:total]

    _change_masks(change)


def count_from_the_first_prefix(_: Engine | None) -> None:
    """The positions of every tree are counted from the end of the first request's prefix."""
    from sglang.srt.speculative.ddtree_worker import DDTreeRuntime

    upstream = DDTreeRuntime.verify_fields

    def verify_fields(runtime: Any, tree: Any, seq_lens: torch.Tensor, seq_lens_cpu: torch.Tensor) -> dict[str, Any]:
        positions = (seq_lens[:1, None] + tree.depths).reshape(-1)
        return {**upstream(runtime, tree, seq_lens, seq_lens_cpu), "positions": positions}

    DDTreeRuntime.verify_fields = verify_fields


def _change_visibility(change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """``change`` takes and gives which nodes a node attends to, bool [bs, W, W]."""
    from sglang.srt.speculative import ddtree_worker

    upstream = ddtree_worker.visibility
    ddtree_worker.visibility = lambda table: change(upstream(table))


def _change_masks(change: Callable[[torch.Tensor, Any, torch.Tensor, int], torch.Tensor]) -> None:
    """``change`` takes and gives the packed mask."""
    from sglang.srt.speculative import ddtree_worker

    upstream = ddtree_worker.packed_mask

    def packed_mask(tree: Any, seen: torch.Tensor, prefix_lens: torch.Tensor, total: int) -> torch.Tensor:
        return change(upstream(tree, seen, prefix_lens, total), tree, prefix_lens, total)

    ddtree_worker.packed_mask = packed_mask


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


def keep_a_bonus_row(engine: Engine) -> None:
    """The drafter is given, for the last accepted node, the hidden state of a node that was not accepted."""

    def spoil(verify_input: Any, batch: Any, rows: torch.Tensor, result: Any) -> None:
        fields, output = result
        path, requests = verify_input.accepted_path, torch.arange(len(rows))
        rejected = path.order[requests, path.lengths.clamp_max(rows.shape[1] - 1)]
        hidden = output.hidden_states.view(len(rows), fields["draft_token_num"], -1)
        hidden[requests, path.lengths - 1] = rows[requests, rejected]

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
