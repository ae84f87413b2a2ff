"""Faults that are planted before a hybrid engine starts: each makes the states of its recurrent layers wrong."""

from __future__ import annotations

from typing import Any

import torch


def close_the_gate() -> None:
    """The backend is built for a chain, as DFLASH's is."""
    from sglang.srt.speculative import ddtree_recurrent

    ddtree_recurrent.tree_gate = lambda model_runner, topk: topk


def link_backwards() -> None:
    """The children of a node are listed from the last to the first."""
    from sglang.srt.speculative import ddtree_worker

    def links(tree: Any) -> tuple[torch.Tensor, torch.Tensor]:
        first, following = torch.full_like(tree.parents, -1), torch.full_like(tree.parents, -1)
        for request, parents in enumerate(tree.parents.tolist()):
            for node in range(1, len(parents)):
                if parents[node] >= 0:
                    following[request, node] = first[request, parents[node]]
                    first[request, parents[node]] = node
        return first, following

    ddtree_worker.links = links


def keep_by_length() -> None:
    """The state at the accepted length is kept, as DFLASH keeps it."""
    from sglang.srt.speculative.ddtree_worker import DDTreeRuntime

    DDTreeRuntime.nodes_of = lambda self, last, tracked: (last, tracked)


def leave_links_out() -> None:
    from sglang.srt.speculative.ddtree_worker import DDTreeRuntime

    upstream = DDTreeRuntime.verify_fields

    def verify_fields(self: Any, tree: Any, seq_lens: torch.Tensor) -> dict[str, Any]:
        return {**upstream(self, tree, seq_lens), "retrieve_next_token": None, "retrieve_next_sibling": None}

    DDTreeRuntime.verify_fields = verify_fields


def rehearse_without_links() -> None:
    from sglang.srt.speculative.dflash_info import DFlashVerifyInput

    del DFlashVerifyInput.retrieve_next_token


def one_state_short() -> None:
    """The pool has a state less a request than a tree has nodes."""
    from sglang.srt.mem_cache.memory_pool import MambaPool

    upstream = MambaPool.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        kwargs["speculative_num_draft_tokens"] -= 1
        upstream(self, *args, **kwargs)

    MambaPool.__init__ = init


def let_windows_overlap() -> None:
    """On a pool with a GPU's layout: as for a chain."""
    from sglang.srt.speculative import ddtree_config

    ddtree_config.verifies_trees = lambda: False


def unchecked() -> None:
    """Nobody asks at the start."""
    from sglang.srt.speculative import ddtree_start

    ddtree_start.refuse_inexact_states = lambda *_: None


def leave_little_memory() -> None:
    """As much as 40 states take, whatever the machine has."""
    from sglang.srt.speculative import ddtree_room

    upstream = ddtree_room.refuse_too_many_states

    def refuse(holder: Any, room: float, **options: Any) -> None:
        state = holder.mambaish_config.mamba2_cache_params.mamba_cache_per_req
        upstream(holder, 40 * state / (1 << 30), **options)

    ddtree_room.refuse_too_many_states = refuse


def forget_the_family() -> None:
    """As if the target were of a family that nobody has looked at."""
    from sglang.srt.speculative import ddtree_families

    ddtree_families._FAMILIES.clear()
