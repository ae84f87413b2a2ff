"""In an engine's process on a GPU: the tree's part of a step must not wait for the device; how long a step takes."""

from __future__ import annotations

import functools
import importlib
import time
from collections.abc import Callable
from typing import Any

import torch

# The functions of the tree's part of a step. Whatever of SGLang's they call is in them, but for a sampler's draw.
_OF_A_STEP = {
    "ddtree_worker.DDTreeRuntime": ("best_chain", "draft", "verify_fields", "accept"),
    "ddtree_worker": ("linearise_in_window",),
    "ddtree_input.DraftTreeFields": ("mask_tree", "place_tree"),
}


def forbid(wanted: bool) -> list[str]:
    """From now on these functions raise where they wait for the device; the names of those that are watched."""
    if not wanted:
        return []
    watched = []
    for place, names in _OF_A_STEP.items():
        module, _, owner = place.partition(".")
        holder: Any = importlib.import_module(f"sglang.srt.speculative.{module}")
        holder = getattr(holder, owner) if owner else holder
        for name in names:
            if hasattr(holder, name):
                setattr(holder, name, _never_waits(getattr(holder, name)))
                watched.append(f"{place}.{name}")
    return watched


def _never_waits(upstream: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(upstream)
    def call(*args: Any, **kwargs: Any) -> Any:
        before = torch.cuda.get_sync_debug_mode()
        torch.cuda.set_sync_debug_mode("error")
        try:
            return upstream(*args, **kwargs)
        finally:
            torch.cuda.set_sync_debug_mode(before)

    return call


def time_steps(engine: Any) -> list[float]:
    """Seconds of every decode step from now on, each until the device is idle; the list fills while the engine runs."""
    seconds: list[float] = []
    started = [0.0]

    def start(batch: Any) -> None:
        torch.cuda.synchronize()
        started[0] = time.perf_counter()

    def stop(batch: Any) -> None:
        torch.cuda.synchronize()
        if batch.forward_mode.is_decode() or batch.forward_mode.is_target_verify():
            seconds.append(time.perf_counter() - started[0])

    engine.before_batch.append(start)
    engine.after_batch.append(stop)
    return seconds
