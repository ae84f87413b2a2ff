"""The start-up self-check, alone: what it says, and what it leaves behind."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import scenarios
import torch

Pools = dict[str, torch.Tensor]


def start(flags: Sequence[str] = (), models: dict[str, Any] | None = None, plant: str = "") -> dict[str, Any]:
    """Starts an engine with a fault of ``faults.py``, planted before. Where it did not start, says why.

    ``untouched`` lists what of the pools was after the check as before, or is empty where nothing was checked.
    """
    if plant:
        getattr(importlib.import_module("faults"), plant)(None)
    untouched = _watch_check()
    try:
        engine = scenarios.start("DDTREE", flags, models)
    except RuntimeError as error:
        return {"refused": f"{type(error).__name__}: {error}", "logs": [], "untouched": untouched}
    return {"refused": "", "logs": engine.logs.lines, "untouched": untouched}


def _watch_check() -> list[str]:
    from sglang.srt.speculative import ddtree_start

    upstream, untouched = ddtree_start.check_tree_attention, []

    def check(runtime: Any, target: Any, verify_input: Any, **options: Any) -> str:
        before = _pools(target)
        try:
            said: str = upstream(runtime, target, verify_input, **options)
        finally:
            after = _pools(target)
            untouched.extend(name for name, value in before.items() if torch.equal(value, after[name]))
        return said

    ddtree_start.check_tree_attention = check
    return untouched


def _pools(target: Any) -> Pools:
    allocator = target.token_to_kv_pool_allocator
    return {
        "free slots": torch.cat([allocator.free_pages, allocator.release_pages]).sort().values,
        "request table": target.req_to_token_pool.req_to_token.clone(),
        "free requests": torch.tensor(target.req_to_token_pool.free_slots),
    }
