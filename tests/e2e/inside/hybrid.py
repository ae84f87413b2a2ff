"""Hybrid targets: refused, or run; what they emit, and where their slots are."""

from __future__ import annotations

import importlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import scenarios
from ddtree_patch_probe import hybrid_models, hybrid_shims, release
from ddtree_patch_probe.engine import Engine
from ddtree_patch_probe.flags import server_flags
from ddtree_patch_probe.models import TinyModels

WITHOUT_RADIX_CACHE = ("--disable-radix-cache",)
ROOM = ("--max-mamba-cache-size", "12")


def start(
    algorithm: str,
    flags: Sequence[str] = (),
    kind: str = hybrid_models.QWEN3_NEXT,
    plant: Sequence[str] = (),
    layout: str = "",
    cache: bool = False,
    **models: Any,
) -> Engine:
    """An engine of a tiny hybrid target. ``plant`` names faults of ``hybrid_faults.py``, planted before it starts;
    ``layout`` is ``overlapping`` for the pool of a GPU."""
    hybrid_shims.apply()
    if layout == "overlapping":
        hybrid_shims.overlapping_windows()
    for fault in plant:
        getattr(importlib.import_module("hybrid_faults"), fault)()
    checkpoints = hybrid_models.write(tempfile.mkdtemp(), kind, **models)
    return Engine(server_flags(checkpoints, algorithm, (*ROOM, *(() if cache else WITHOUT_RADIX_CACHE), *flags)))


def play(algorithm: str, script: list[dict[str, Any]], **engine_fields: Any) -> dict[str, Any]:
    """Plays the rounds of a script as ``scenarios.play`` does.

    ``all_free`` tells whether every slot is free again, of the KV cache and of recurrent states.
    """
    engine = start(algorithm, **engine_fields)
    states = _mamba_allocator(engine)
    room = sorted(engine.pools.free_pages()), states.available_size()
    faults: list[str] = []
    rounds = [scenarios._play_round(engine, round_, faults) for round_ in script]
    return {
        "rounds": rounds,
        "faults": faults,
        "all_free": (sorted(engine.pools.free_pages()), states.available_size()) == room,
        "double_frees": engine.pools.double_frees,
        "logs": engine.logs.lines,
    }


def started(hidden: bool = False, **engine_fields: Any) -> dict[str, Any]:
    """What a start says: ``refused`` is the reason why there is no server, or empty.

    With ``hidden`` the arguments do not see what the target is, as with a configuration that comes from elsewhere.
    """
    if hidden:
        from sglang.srt.speculative import ddtree_args

        ddtree_args.recurrence_of = lambda model_config: None
    try:
        engine = start("DDTREE", **engine_fields)
    except (RuntimeError, ValueError, AssertionError) as error:
        return {"refused": f"{type(error).__name__}: {error}", "logs": []}
    return {"refused": "", "logs": engine.logs.lines}


def refusals(configs: Mapping[str, dict[str, Any]], flags: Sequence[str] = ()) -> dict[str, str]:
    """What the command line says to DDTREE on targets with these configurations; empty where it takes one."""
    found: dict[str, str] = {}
    for name, more in configs.items():
        checkpoints = TinyModels().write(tempfile.mkdtemp())
        path = Path(checkpoints.target, "config.json")
        config = {**json.loads(path.read_text(encoding="utf-8")), **more}
        path.write_text(json.dumps(config), encoding="utf-8")
        try:
            release.resolve(server_flags(checkpoints, "DDTREE", (*ROOM, *WITHOUT_RADIX_CACHE, *flags)))
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
        else:
            found[name] = ""
    return found


def _mamba_allocator(engine: Engine) -> Any:
    """Whoever hands out the slots of recurrent states."""
    pool = engine.scheduler.req_to_token_pool
    return getattr(pool, "mamba_allocator", None) or pool.mamba_pool
