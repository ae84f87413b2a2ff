"""The KV cache of every committed position, after every step, against a fresh prefill of the same tokens."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import scenarios
import torch
from ddtree_patch_probe import release
from ddtree_patch_probe.engine import Engine, Request

Snapshot = tuple[list[int], list[torch.Tensor]]  # the committed tokens, and each buffer's rows for them


def compare(requests: list[dict[str, Any]], flags: Sequence[str] = (), plant: str = "") -> dict[str, Any]:
    """The largest difference of any value, by model and layer, over all steps; and how much was compared.

    The fresh prefill runs in the same engine, of one request's tokens in one chunk, with an empty radix cache. The step
    in which a request ends is not compared: its slots have been given back when it is known.
    """
    engine = scenarios.start("DDTREE", flags)
    if plant:
        getattr(importlib.import_module("faults"), plant)(engine)
    taken: dict[str, list[Snapshot]] = {}
    wrong_lengths: list[str] = []

    def prefilled(batch: Any) -> None:
        if batch.forward_mode.is_extend():
            _take(engine, batch.reqs, taken)

    def verified(batch: Any, emitted: Mapping[int, int]) -> None:
        requests = [batch.reqs[place] for place in emitted]
        _take(engine, requests, taken)
        for request in requests:
            expected = len(request.origin_input_ids) + len(request.output_ids) - 1
            if release.kv_span(request) and release.committed_len(request) != expected:
                wrong_lengths.append(f"{request.rid}: {release.committed_len(request)} positions, not {expected}")

    engine.after_batch.append(prefilled)
    engine.after_results.append(verified)
    answers = engine.generate(*(Request(**fields) for fields in requests))
    snapshots = {name: list(steps) for name, steps in taken.items()}
    worst = dict.fromkeys(_labels(engine), 0.0)
    for name, steps in snapshots.items():
        _measure(steps, _prefill(engine, f"fresh-{name}", steps[-1][0], taken), worst)
    return {
        "worst": worst,
        "wrong_lengths": wrong_lengths,
        "steps": sum(map(len, snapshots.values())),
        "accept_lengths": [answer.accept_lengths for answer in answers],
    }


def _take(engine: Engine, requests: Sequence[Any], taken: dict[str, list[Snapshot]]) -> None:
    for request in requests:
        if not (span := release.kv_span(request)):
            continue
        tokens = [*request.origin_input_ids, *request.output_ids][: release.committed_len(request)]
        slots = engine.scheduler.req_to_token_pool.req_to_token[span[0], : len(tokens)].long()
        taken.setdefault(request.rid, []).append((tokens, [buffer[slots].clone() for buffer in _buffers(engine)]))


def _prefill(engine: Engine, name: str, tokens: list[int], taken: dict[str, list[Snapshot]]) -> list[torch.Tensor]:
    engine.scheduler.flush_cache()
    (answer,) = engine.generate(Request(name, tokens, max_new_tokens=1))
    assert answer.cached_tokens == 0, answer
    (prefilled, rows) = taken[name][0]
    assert prefilled == tokens
    return rows


def _measure(steps: list[Snapshot], fresh: list[torch.Tensor], worst: dict[str, float]) -> None:
    for tokens, rows in steps:
        for label, row, reference in zip(worst, rows, fresh, strict=True):
            worst[label] = max(worst[label], float((row - reference[: len(tokens)]).abs().max()))


def _runners(engine: Engine) -> dict[str, Any]:
    return {"target": engine.scheduler.tp_worker.model_runner, "draft": engine.worker.draft_model_runner}


def _labels(engine: Engine) -> list[str]:
    return [
        f"{model} {kind}{layer}"
        for model, runner in _runners(engine).items()
        for layer in range(runner.model_config.num_hidden_layers)
        for kind in ("k", "v")
    ]


def _buffers(engine: Engine) -> list[torch.Tensor]:
    buffers = []
    for runner in _runners(engine).values():
        pool = runner.token_to_kv_pool
        for layer in range(runner.model_config.num_hidden_layers):
            buffers += [pool.get_key_buffer(layer), pool.get_value_buffer(layer)]
    return buffers
