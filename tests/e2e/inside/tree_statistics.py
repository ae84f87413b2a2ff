"""The lines that are logged at the decode-log interval, and the same numbers from what was seen of every step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import scenarios
from ddtree_patch_probe.engine import Engine, Request
from ddtree_patch_probe.notes import BatchNotes
from ddtree_patch_probe.trees import TreeStep, watch_trees


def observe(algorithm: str, requests: list[dict[str, Any]], flags: Sequence[str] = ()) -> dict[str, Any]:
    """``logs``, and of every verify step (DDTREE's alone) one entry for each request.

    An entry holds the drafted nodes, the deepest one's depth, the accepted draft tokens, whether one of them was not
    the best of its position, and the tokens that were emitted: fewer than were accepted where the request ended in this
    step, none where, under overlap, it had ended before.
    """
    engine = scenarios.start(algorithm, flags)
    steps = _watch(engine) if algorithm == "DDTREE" else []
    answers = engine.generate(*(Request(**fields) for fields in requests))
    return {
        "logs": engine.logs.lines,
        "steps": steps,
        "answers": [{"tokens": len(answer.output), "verify_count": answer.verify_count} for answer in answers],
    }


def _watch(engine: Engine) -> list[list[dict[str, Any]]]:
    steps: list[list[dict[str, Any]]] = []

    def keep(requests: list[Any], emitted: Mapping[int, int], notes: list[list[TreeStep]]) -> None:
        for seen in notes:
            steps.append([_entry(step, emitted.get(place, 0)) for place, step in enumerate(seen)])

    notes: BatchNotes[list[TreeStep]] = BatchNotes(engine, keep)
    watch_trees(engine, notes.add)
    return steps


def _entry(step: TreeStep, emitted: int) -> dict[str, Any]:
    nodes, accepted = step.nodes[1:], step.path[1:]
    return {
        "nodes": len(nodes),
        "depth": max(node.depth for node in nodes),
        "accepted": len(accepted),
        "sibling": any(step.nodes[place].rank > 0 for place in accepted),
        "emitted": emitted,
    }
