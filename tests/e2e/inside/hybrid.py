"""Hybrid targets: refused, or run with the switch; what their verify inputs carry, and where their slots are."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any

import hybrid_models
import hybrid_shims
import torch
from ddtree_patch_probe import release
from ddtree_patch_probe.engine import Engine, Request
from ddtree_patch_probe.flags import DDTREE, server_flags

# With speculation SGLang refuses a radix cache for recurrent states.
ROOM = ("--disable-radix-cache", "--max-mamba-cache-size", "12")


def flags_of(algorithm: str, flags: Sequence[str]) -> list[str]:
    return server_flags(hybrid_models.write(tempfile.mkdtemp()), algorithm, (*ROOM, *flags))


def refused(flags: Sequence[str] = (), hidden: bool = False) -> dict[str, str]:
    """Where it ended, ``arguments`` or ``engine``, and what its user reads.

    With ``hidden`` the arguments do not see what the target is, as with a configuration that comes from elsewhere.
    """
    if hidden:
        hybrid_shims.apply()
        from sglang.srt.speculative import ddtree_args

        ddtree_args.is_hybrid_target = lambda server_args: False
    try:
        server_args = release.resolve(flags_of(DDTREE, flags))
    except ValueError as error:
        return {"place": "arguments", "message": str(error)}
    try:
        release.start_scheduler(server_args)
    except ValueError as error:
        return {"place": "engine", "message": str(error)}
    raise AssertionError("a hybrid target has been accepted")


def play(algorithm: str, requests: list[dict[str, Any]], flags: Sequence[str] = ()) -> dict[str, Any]:
    """Runs the requests to their end.

    ``all_free`` tells whether every slot is free again, of the KV cache and of recurrent states; ``verify_inputs`` is
    how many the target was given, ``wrong`` is what is wrong with them.
    """
    hybrid_shims.apply()
    engine = Engine(flags_of(algorithm, flags))
    states = _mamba_allocator(engine)
    room = sorted(engine.pools.free_pages()), states.available_size()
    watch = _watch_verify_inputs(engine) if algorithm == DDTREE else {"verify_inputs": 0, "wrong": []}
    answers = engine.generate(*(Request(**fields) for fields in requests))
    return {
        "outputs": {answer.name: answer.output for answer in answers},
        "accept_lengths": {answer.name: answer.accept_lengths for answer in answers},
        "finishes": [answer.finish for answer in answers],
        "all_free": (sorted(engine.pools.free_pages()), states.available_size()) == room,
        "double_frees": engine.pools.double_frees,
        "logs": engine.logs.lines,
        **watch,
    }


def _mamba_allocator(engine: Engine) -> Any:
    """Whoever hands out the slots of recurrent states."""
    pool = engine.scheduler.req_to_token_pool
    return getattr(pool, "mamba_allocator", None) or pool.mamba_pool


def _watch_verify_inputs(engine: Engine) -> dict[str, Any]:
    """Counts the inputs of the target's verify forwards, and tells what a recurrent kernel could not read in them."""
    found: dict[str, Any] = {"verify_inputs": 0, "wrong": []}
    runner = engine.scheduler.tp_worker.model_runner
    pool = runner.req_to_token_pool.mamba_pool
    buffers = [pool.mamba_cache.intermediate_ssm, *pool.mamba_cache.intermediate_conv_window]
    upstream = runner.forward

    def forward(forward_batch: Any, *args: Any, **kwargs: Any) -> Any:
        if forward_batch.forward_mode.is_target_verify():
            found["verify_inputs"] += 1
            found["wrong"] += _faults(forward_batch.spec_info, forward_batch.batch_size, buffers)
        return upstream(forward_batch, *args, **kwargs)

    runner.forward = forward
    return found


def _faults(info: Any, bs: int, buffers: Sequence[torch.Tensor]) -> list[str]:
    children, siblings = info.retrieve_next_token, info.retrieve_next_sibling
    if children is None or siblings is None:
        return ["a verify input without links"]
    width = info.draft_token_num
    faults = [f"{tuple(links.shape)} links" for links in (children, siblings) if links.shape != (bs, width)]
    faults += [f"{buffer.shape[2]} states for {width} nodes" for buffer in buffers if buffer.shape[2] != width]
    nodes = torch.arange(width)
    for links in (children, siblings):
        if not bool(((links == -1) | (links > nodes)).all()):
            faults.append(f"links that go back: {links.tolist()}")
    return faults
