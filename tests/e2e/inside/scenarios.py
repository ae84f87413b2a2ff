"""Runs in a fork of an engine server: starts one engine and plays a script of requests through it."""

from __future__ import annotations

import dataclasses
import importlib
import tempfile
from collections.abc import Sequence
from typing import Any

from ddtree_patch_probe.engine import Engine, Request
from ddtree_patch_probe.flags import server_flags
from ddtree_patch_probe.models import TinyModels

LIMIT = 400  # steps for one round


def start(algorithm: str, flags: Sequence[str] = (), models: dict[str, Any] | None = None) -> Engine:
    """An engine of the tiny models that these fields describe."""
    folder = tempfile.mkdtemp()
    return Engine(server_flags(TinyModels(**(models or {})).write(folder), algorithm, flags))


def play(
    algorithm: str,
    script: list[dict[str, Any]],
    flags: Sequence[str] = (),
    models: dict[str, Any] | None = None,
    plant: str = "",
    prepare: dict[str, dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Plays the rounds of a script one after the other, looking at the KV pool after every step.

    A round has ``requests`` (fields of ``Request``), run together. It may have ``abort``, pairs of a number of batches
    and the name of a request that is aborted after so many batches of the round; and ``shape``, the budget and the topk
    of the trees from this round on, of a server that has room for larger ones. ``plant`` names a fault of
    ``faults.py`` to plant; ``prepare`` sets attributes of modules, before the engine starts.
    """
    for module, attributes in (prepare or {}).items():
        for name, value in attributes.items():
            setattr(importlib.import_module(module), name, value)
    engine = start(algorithm, flags, models)
    if plant:
        getattr(importlib.import_module("faults"), plant)(engine)
    faults: list[str] = []
    rounds = [_play_round(engine, round_, faults) for round_ in script]
    return {
        "rounds": rounds,
        "faults": faults,
        "double_frees": engine.pools.double_frees,
        "batches": engine.batches,
        "overlap": bool(engine.scheduler.enable_overlap),
        "logs": engine.logs.lines,
        "total_slots": engine.balance().total,
    }


def _play_round(engine: Engine, round_: dict[str, Any], faults: list[str]) -> dict[str, Any]:
    """The answers by name."""
    requests = [Request(**fields) for fields in round_["requests"]]
    aborts = list(round_.get("abort", ()))
    if "shape" in round_:
        engine.worker.ddtree.budget, engine.worker.ddtree.topk = round_["shape"]
    first = engine.batches
    engine.submit(*requests)
    for _ in range(LIMIT):
        if not engine.busy:
            break
        for batches, name in [abort for abort in aborts if engine.batches - first >= abort[0]]:
            engine.abort(name)
            aborts.remove([batches, name])
        engine.step()
        _check(engine, faults)
    engine.run()
    _check(engine, faults)
    return {request.name: dataclasses.asdict(engine.answers[request.name]) for request in requests}


def _check(engine: Engine, faults: list[str]) -> None:
    balance = engine.balance()
    if not balance.adds_up:
        faults.append(f"after {engine.batches} batches: {balance}")
