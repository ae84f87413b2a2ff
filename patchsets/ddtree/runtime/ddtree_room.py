"""Whether the recurrent states of a tree's nodes fit into the memory that is left, and which budget would.

A hybrid target's pool has one state for each slot and W states more for each running request, all of them as large as a
request's own. SGLang reserves both before the KV cache: for the requests that were asked for, or, with a radix cache,
for as many as fit into a share of the memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sglang.srt.speculative.ddtree_config import spec_config

_GIB = 1 << 30
_KEPT = 0.125  # of the room: what a budget that is advised leaves to the KV cache


@dataclass(frozen=True)
class StateRoom:
    """What the states may take, and who needs them."""

    room: float  # bytes
    state: int  # bytes of one state, of all recurrent layers
    slots: int  # states that are kept without a tree
    requests: int  # running requests, each with the states of a tree

    def needs(self, width: int) -> int:
        """Bytes for trees of `width` nodes. One more of each is the pool's padding."""
        return self.state * (self.slots + 1 + (self.requests + 1) * width)

    @property
    def widest(self) -> int:
        """The largest verify width that fits and leaves a part of the room; 0 or less where none does."""
        left = self.room * (1 - _KEPT) - self.state * (self.slots + 1)
        return int(left // (self.state * (self.requests + 1)))


def refuse_too_many_states(holder: Any, room: float, *, reserves_all: bool = False) -> None:
    """Raise `ValueError` where the states of the tree's nodes do not fit into `room` GiB.

    `holder` is what sizes the pools: the model runner, or from 0.5.16 on its configurator. With `reserves_all` the
    release reserves the states of all requests first, also beside a radix cache.
    """
    states, spec = _states(holder, room * _GIB, reserves_all), spec_config()
    width, block_size = int(spec.speculative_num_draft_tokens), int(spec.speculative_dflash_block_size)
    if states.needs(width) < states.room:
        return
    fits = states.widest - 1
    advice = (
        f"Use a --speculative-ddtree-budget of at most {fits}"
        if states.widest >= block_size
        else f"No budget fits, as a block of the drafter has {block_size} nodes itself. Use fewer requests"
    )
    raise ValueError(
        f"DDTREE has no room for the recurrent states of its trees: this target keeps {states.state / _GIB:.3g} GiB a "
        f"node, which are {states.needs(width) / _GIB:.3g} GiB for {width} nodes of each of {states.requests} running "
        f"requests and {states.slots} states besides, and there are {states.room / _GIB:.3g} GiB. {advice}, lower "
        "--max-running-requests, or raise --mem-fraction-static."
    )


def _states(holder: Any, room: float, reserves_all: bool) -> StateRoom:
    state = int(holder.mambaish_config.mamba2_cache_params.mamba_cache_per_req)
    requests, slots = _value(holder, "max_running_requests"), _value(holder, "max_mamba_cache_size")
    ratio = int(holder._calculate_mamba_ratio())
    if slots is not None:
        return StateRoom(room, state, int(slots), int(requests) if reserves_all else min(requests, slots // ratio))
    if _value(holder, "disable_radix_cache"):
        return StateRoom(room, state, int(requests), int(requests))
    share = float(_value(holder, "mamba_full_memory_ratio"))
    share = share / (1 + share)
    if reserves_all:
        return StateRoom(room, state, int(ratio / share), int(requests))
    return StateRoom(room * share, state, ratio, 1)  # as few requests as there can be


def _value(holder: Any, name: str) -> Any:
    """A resolved argument: from 0.5.17 on in one of two published namespaces."""
    try:
        from sglang.srt.runtime_context import get_memory, get_schedule
    except ImportError:
        return getattr(holder.server_args, name)
    schedule = get_schedule()
    return getattr(schedule, name) if hasattr(schedule, name) else getattr(get_memory(), name)
