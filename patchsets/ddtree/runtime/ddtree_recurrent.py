"""The recurrent layers of a hybrid target under a tree: the gate of their kernels, what must hold, their states.

In a verify forward such a layer writes the state after every node into buffers of the pool, [layers, request, node,
...], and a commit afterwards copies one node's state to where the request keeps its own. That is exact for a tree when
the kernels take each node's parent from the links of the tree (the gate), when the buffers have a state for every node
and none overlaps another, and when what is committed is the last accepted node.
"""

from __future__ import annotations

from typing import Any

import torch
from sglang.srt.speculative.ddtree_families import recurrence_of

# More than one child a node: how SGLang's backends tell a tree from a chain.
_OPEN = 2


class RecurrentStateError(RuntimeError):
    """The states of recurrent layers would be wrong under a tree: the server must not start."""


def tree_gate(model_runner: Any, topk: int) -> int:
    """What a backend of recurrent layers has to take for `topk`: above 1, its kernels follow the links of a tree.

    Left as it is for the drafter, which fills a block, and for families that have no such kernels.
    """
    recurrence = None if model_runner.is_draft_worker else recurrence_of(model_runner.model_config)
    return max(topk, _OPEN) if recurrence is not None and recurrence.is_exact else topk


def refuse_inexact_states(target: Any, width: int, verify_input: Any) -> None:
    """Raise `RecurrentStateError`, naming every precondition that does not hold, for a target of an exact family.

    `verify_input` is the class of the target's inputs, dflash_info.DDTreeVerifyInput.
    """
    faults = [
        *_gate_faults(target.attn_backend.linear_attn_backend),
        *_buffer_faults(_cache(target), width),
        *_link_faults(verify_input),
    ]
    if faults := list(dict.fromkeys(faults)):
        raise RecurrentStateError(
            f"DDTREE: the states of this target's recurrent layers would be wrong under a tree: {'; '.join(faults)}. "
            "Use --speculative-algorithm DFLASH, and report this with the release and the device."
        )


def _gate_faults(linear_backend: Any) -> list[str]:
    faults = []
    if not linear_backend.topk > 1:
        faults.append(
            f"gate: {type(linear_backend).__name__} was built for a chain (topk {linear_backend.topk}) and would not "
            "read the links of the tree"
        )
    kernels = getattr(linear_backend, "kernel_dispatcher", None)
    verifies = getattr(kernels, "tree_verify_kernel", None) or getattr(kernels, "verify_kernel", None)
    if verifies is not None and not type(verifies).__name__.startswith("Triton"):
        faults.append(f"kernel: {type(verifies).__name__} verifies no trees; set --linear-attn-backend triton")
    return faults


def _buffer_faults(cache: Any, width: int) -> list[str]:
    """In pools of every release the buffers are [layers, requests, nodes, ...]."""
    states, windows = getattr(cache, "intermediate_ssm", None), getattr(cache, "intermediate_conv_window", None)
    if states is None or not windows:
        return ["step count: the pool keeps no states of nodes"]
    faults = []
    for buffer in (states, *windows):
        if buffer.shape[2] != width:
            faults.append(f"step count: the pool keeps {buffer.shape[2]} states a request for {width} nodes")
        if buffer.stride(2) < buffer[0, 0, 0].numel():
            faults.append("window layout: the convolution windows of neighbouring nodes overlap in the pool")
    return faults


def _link_faults(verify_input: Any) -> list[str]:
    """A backend with an open gate asks every verify input for links, those of rehearsed forwards among them."""
    plain = [cls for cls in verify_input.__mro__ if cls.__name__ == "DFlashVerifyInput"]
    names = ("retrieve_next_token", "retrieve_next_sibling")
    missing = [name for cls in plain for name in names if not hasattr(cls, name)]
    return [f"links: an input of a rehearsed forward has no {name}" for name in missing]


def _cache(target: Any) -> Any:
    return target.req_to_token_pool.mamba_pool.mamba_cache


class BenchStates:
    """Slots of the state pool for the first rows of the request table, while no request runs; for the self-check."""

    def __init__(self, target: Any, bs: int) -> None:
        self.target = target
        cache = _cache(target)
        self.pools = [*cache.conv, cache.temporal]  # each [layers, slots, ...]
        self.mapping = target.req_to_token_pool.req_index_to_mamba_index_mapping
        self.slots = torch.arange(1, bs + 1, device=self.pools[0].device)  # 0 is the slot of padding
        self._rows = self.mapping[:bs].clone()
        self._before = self.now()
        self._start = [_noise(pool[:, self.slots], seed) for seed, pool in enumerate(self.pools)]

    @staticmethod
    def most(target: Any) -> int:
        """How many requests have slots."""
        return int(target.req_to_token_pool.mamba_pool.size)

    def begin(self) -> None:
        """Let every request begin at a state of its own: the same one whenever it is called."""
        self.mapping[: len(self.slots)] = self.slots.to(self.mapping.dtype)
        self._write(self._start)

    def restore(self) -> None:
        """As it was before the first :meth:`begin`."""
        self.mapping[: len(self.slots)] = self._rows
        self._write(self._before)

    def commit(self, nodes: torch.Tensor) -> list[torch.Tensor]:
        """The states that are kept after a verify forward when `nodes` [bs] are the last accepted ones."""
        self.target.attn_backend.update_mamba_state_after_mtp_verify(nodes, None, None, self.target.model)
        return self.now()

    def now(self) -> list[torch.Tensor]:
        """A copy of the requests' states, one tensor [layers, bs, ...] a pool."""
        return [pool[:, self.slots].clone() for pool in self.pools]

    def difference(self, ours: list[torch.Tensor], theirs: list[torch.Tensor]) -> float:
        """Of two states: the largest difference, as a share of how far the second is from the start."""
        shares = [0.0]
        for one, other, start in zip(ours, theirs, self._start, strict=True):
            way = (other - start).float().abs().amax()
            shares.append(float((one - other).float().abs().amax() / way))
        return float("nan") if any(share != share for share in shares) else max(shares)

    def _write(self, states: list[torch.Tensor]) -> None:
        for pool, state in zip(self.pools, states, strict=True):
            pool[:, self.slots] = state


def _noise(like: torch.Tensor, seed: int) -> torch.Tensor:
    """Small, and of no symmetry that could hide a mistake."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(like.shape, generator=generator) / 8).to(like.device, like.dtype)
