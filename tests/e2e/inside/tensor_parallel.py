"""Plays a script of requests through the ranks of a tensor-parallel group, and records what each of them does.

Every rank is a real scheduler in a process of its own; they talk through gloo, and meet at the file that the fork of
the engine server names, so that no port is taken.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import torch
from ddtree_patch_probe.engine import Engine, Request, Stuck
from ddtree_patch_probe.flags import server_flags
from ddtree_patch_probe.models import Checkpoints, TinyModels
from ddtree_patch_probe.trees import TreeStep, watch_trees
from tensor_parallel_ranks import run_ranks

LIMIT = 400  # steps for one round


def play(
    ranks: int,
    algorithm: str,
    script: list[dict[str, Any]],
    flags: Sequence[str] = (),
    models: dict[str, Any] | None = None,
    plant: str = "",
    batches: int = 0,
    seconds: float = 150.0,
) -> list[dict[str, Any]]:
    """What each rank did, in the order of ranks; see ``_Record.value``.

    Plays the rounds of the script one after the other; of a round only so many batches where ``batches`` is given.
    ``plant`` names a change of ``tensor_parallel_faults.py``, made on every rank before its engine starts.
    """
    written = TinyModels(**(models or {})).write(tempfile.mkdtemp())
    os.environ["SGLANG_CPU_OMP_THREADS_BIND"] = "|".join(["0"] * ranks)  # a core for each rank; nothing binds it here
    return run_ranks(
        partial(_play, ranks, algorithm, written, script, flags, plant, batches), ranks=ranks, time_limit=seconds
    )


def _play(
    ranks: int,
    algorithm: str,
    models: Checkpoints,
    script: list[dict[str, Any]],
    flags: Sequence[str],
    plant: str,
    batches: int,
    rank: int,
) -> dict[str, Any]:
    """The life of one rank."""
    _gather_on_the_cpu()
    if plant:
        getattr(importlib.import_module("tensor_parallel_faults"), plant)(rank)
    engine = Engine(server_flags(models, algorithm, ("--tp-size", str(ranks), *flags)), rank=rank)
    record = _Record(engine)
    for round_ in script:
        _play_round(engine, [Request(**fields) for fields in round_["requests"]], batches)
        record.check_pools()
    return record.value()


def _play_round(engine: Engine, requests: list[Request], batches: int) -> None:
    engine.submit(*requests)
    last = engine.batches + batches if batches else None
    for _ in range(LIMIT):
        # Rank 0 decides for all of them: it alone gets answers.
        if not _said_by_rank_0((engine.busy or engine.scheduler.last_batch is not None) and engine.batches != last):
            break
        engine.step()
    else:
        raise Stuck(f"requests did not finish within {LIMIT} steps")
    if not batches:
        engine.step()  # an idle one, in which SGLang checks its pools


def _said_by_rank_0(value: bool) -> bool:
    said = [value]
    torch.distributed.broadcast_object_list(said, src=0)
    return said[0]


def _gather_on_the_cpu() -> None:
    """Ranks gather tensors without the operator that releases before 0.5.20 register for GPUs alone."""
    from sglang.srt.distributed.parallel_state import GroupCoordinator

    GroupCoordinator.all_gather_into_tensor = GroupCoordinator._all_gather_into_tensor


class _Record:
    """What one rank does."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._steps: list[list[TreeStep]] = []
        self._accept_lengths: dict[str, list[int]] = {}
        self._faults: list[str] = []
        if hasattr(engine.worker, "ddtree"):
            watch_trees(engine, self._steps.append)
        engine.after_results.append(self._note)

    def _note(self, batch: Any, emitted: Mapping[int, int]) -> None:
        for place, tokens in emitted.items():
            self._accept_lengths.setdefault(batch.reqs[place].rid, []).append(tokens)

    def check_pools(self) -> None:
        """Between two steps."""
        balance = self._engine.balance()
        if not balance.adds_up:
            self._faults.append(str(balance))

    def value(self) -> dict[str, Any]:
        """As JSON. ``steps`` has for every verify step of a batch one ``TreeStep`` a request, in the batch's order.

        ``part`` is the rank's part of the vocabulary: its first token, and the first one beyond it.
        """
        requests = self._engine.requests.items()
        shard = self._engine.scheduler.tp_worker.model_runner.model.lm_head.shard_indices
        return {
            "part": [shard.org_vocab_start_index, shard.org_vocab_end_index],
            "steps": [[asdict(step) for step in steps] for steps in self._steps],
            "accept_lengths": self._accept_lengths,
            "outputs": {name: list(request.output_ids_through_stop) for name, request in requests},
            "faults": self._faults,
            "double_frees": self._engine.pools.double_frees,
            "logs": self._engine.logs.lines,
        }
