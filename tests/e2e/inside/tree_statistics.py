"""The lines that are logged at the decode-log interval, and the same numbers from what was seen of every step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import scenarios
from ddtree_patch_probe.engine import Request


def observe(algorithm: str, requests: list[dict[str, Any]], flags: Sequence[str] = ()) -> dict[str, Any]:
    """``logs``, and of every verify step (DDTREE's alone) one entry for each request.

    An entry holds the drafted nodes, the deepest one's depth, the emitted tokens and the ranks of those of them that
    are in the tree. ``ended`` says of every step whether a request ended in it: then its path may have been longer.
    """
    engine = scenarios.start(algorithm, flags)
    drafted: list[Any] = []
    steps: list[list[dict[str, Any]]] = []
    ended: list[bool] = []
    before: list[int] = []

    def begin(batch: Any) -> None:
        before[:] = [len(request.output_ids) for request in batch.reqs]

    def end(batch: Any) -> None:
        for tree in drafted:
            emitted = [list(request.output_ids[place:]) for request, place in zip(batch.reqs, before, strict=True)]
            steps.append([_entry(tree, request, tokens) for request, tokens in enumerate(emitted)])
            ended.append(any(request.finished() for request in batch.reqs))
        drafted.clear()

    if algorithm == "DDTREE":
        upstream = engine.worker.ddtree.draft
        engine.worker.ddtree.draft = lambda *arguments: drafted.append(upstream(*arguments)) or drafted[-1]
    engine.before_batch.append(begin)
    engine.after_batch.append(end)
    answers = engine.generate(*(Request(**fields) for fields in requests))
    return {
        "logs": engine.logs.lines,
        "steps": steps,
        "ended": ended,
        "answers": [{"tokens": len(answer.output), "verify_count": answer.verify_count} for answer in answers],
    }


def _entry(tree: Any, request: int, emitted: list[int]) -> dict[str, Any]:
    names = ("tokens", "parents", "depths", "ranks")
    nodes = list(zip(*(getattr(tree, name)[request].tolist() for name in names), strict=True))
    at, ranks = 0, []
    for token in emitted:
        found = [number for number, node in enumerate(nodes) if node[:2] == (token, at) and node[3] >= 0]
        if not found:
            break
        at = found[0]
        ranks.append(nodes[at][3])
    real = [node for node in nodes[1:] if node[3] >= 0]
    return {"nodes": len(real), "depth": max(node[2] for node in real), "emitted": len(emitted), "ranks": ranks}
