"""What DDTREE drafted and accepted, request by request and step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .engine import Engine
from .notes import BatchNotes


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a draft tree."""

    token: int
    parent: int  # its index; -1 for the root
    depth: int
    rank: int  # which candidate of its position it is, the best 0; 0 for the root


@dataclass(frozen=True, slots=True)
class TreeStep:
    """One verify step of one request."""

    nodes: list[Node]  # the root first, without padding
    path: list[int]  # the accepted nodes, the root first
    bonus: int  # the target's token after the last of them


def watch_trees(engine: Engine, see: Callable[[list[TreeStep]], None]) -> None:
    """Tells ``see`` of every verify step of a batch, one ``TreeStep`` a row, where the runtime counts it."""
    statistics = engine.worker.ddtree.statistics
    upstream = statistics.count

    def count(tree: Any, path: Any) -> None:
        see(_steps(tree, path))
        upstream(tree, path)

    statistics.count = count


class TreeWatch:
    """Records the verify steps of every request of an engine that runs DDTREE."""

    def __init__(self, engine: Engine) -> None:
        self.steps: dict[str, list[TreeStep]] = {}
        notes: BatchNotes[list[TreeStep]] = BatchNotes(engine, self._keep)
        watch_trees(engine, notes.add)

    def _keep(self, requests: list[Any], emitted: Mapping[int, int], notes: list[list[TreeStep]]) -> None:
        for place in emitted:
            (steps,) = notes
            self.steps.setdefault(requests[place].rid, []).append(steps[place])


def _steps(tree: Any, path: Any) -> list[TreeStep]:
    fields = (tree.tokens, tree.parents, tree.depths, tree.ranks)
    trees = zip(*(field.tolist() for field in fields), strict=True)
    paths = zip(path.order.tolist(), path.lengths.tolist(), path.bonus.tolist(), strict=True)
    return [
        TreeStep([node for node in map(Node, *rows) if node.rank >= 0], order[:length], bonus)
        for rows, (order, length, bonus) in zip(trees, paths, strict=True)
    ]
