"""DDTree's tree as the paper builds it: a heap, one prefix at a time (arXiv 2604.12989, section 3).

The input is one list of (token, log-prob) a position, best first, the same for every branch: a block-diffusion draft
does not condition one position on another. A *prefix* chooses one candidate at each of the positions 1 to depth and
costs the sum of their negated log-probs, each a whole multiple of 2**-24 nats so that sums are exact. The tree is the
``budget`` prefixes that come first in this order:

1. lower cost;
2. smaller depth;
3. the one whose parent comes first in this same order (siblings have the same parent);
4. lower rank, which is the place in the candidate list.

A parent never costs more than its child and is shallower, so the order alone closes the tree under parents.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

Candidates = Sequence[Sequence[tuple[int, float]]]  # position → rank → (token, log-prob)
Key = tuple[int, int, "Key | None", int]  # cost, depth, parent's key, rank: ascending in the order above

ROOT = 0
UNIT = 2.0**-24  # nats
DEAREST = 4095.0  # nats; an unlikelier candidate counts as this


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a tree; nodes are numbered in the order of a list whose first is the root."""

    token: int
    parent: int  # a node's number; -1 for the root
    depth: int  # tokens between the root and here, this one included
    rank: int  # place in the candidate list of this depth, from 0; 0 for the root
    score: float  # log-probability of the prefix; 0 for the root


@dataclass(frozen=True, slots=True)
class Prefix:
    """A prefix before it has a number: the ranks that it chooses, and its key."""

    ranks: tuple[int, ...]
    key: Key


def cost(logprob: float) -> int:
    """What a candidate costs, in units."""
    return round(min(max(-logprob, 0.0), DEAREST) / UNIT)


def best_first_tree(root: int, candidates: Candidates, budget: int, *, spine: bool = False) -> list[Node]:
    """The root and at most ``budget`` nodes; fewer only where no more prefixes of finite log-prob exist.

    With ``spine`` the chain of first candidates, as much of it as the budget holds, comes first, whatever it costs;
    the best of the other prefixes follow.
    """
    forced = _spine(candidates, budget) if spine else []
    chosen = {prefix.ranks: prefix for prefix in forced}
    heap = _Heap(candidates)
    while len(chosen) < budget and (prefix := heap.pop()) is not None:
        chosen.setdefault(prefix.ranks, prefix)
    return _numbered(root, candidates, list(chosen.values()))


def brute_force_tree(root: int, candidates: Candidates, budget: int, *, spine: bool = False) -> list[Node]:
    """The same from the definition: every prefix there is, sorted. For small cases."""
    everything = sorted(_every_prefix(candidates), key=lambda prefix: prefix.key)
    forced = [prefix for prefix in everything if spine and not any(prefix.ranks)][:budget]
    others = [prefix for prefix in everything if prefix not in forced]
    return _numbered(root, candidates, forced + others[: budget - len(forced)])


def chain(root: int, candidates: Candidates) -> list[Node]:
    """What DFLASH proposes: the first candidate of every position."""
    nodes, spent = [Node(root, -1, 0, 0, 0.0)], 0
    for depth, row in enumerate(candidates, 1):
        spent += cost(row[0][1])
        nodes.append(Node(row[0][0], depth - 1, depth, 0, -spent * UNIT))
    return nodes


def children(tree: Sequence[Node], node: int) -> list[int]:
    """A node's children in ascending order."""
    return [child for child, item in enumerate(tree) if item.parent == node]


def links(tree: Sequence[Node]) -> tuple[list[int], list[int]]:
    """(first child, next sibling) of every node; -1 where there is none."""
    first_child, next_sibling = [-1] * len(tree), [-1] * len(tree)
    for node in range(len(tree)):
        family = children(tree, node)
        first_child[node] = family[0] if family else -1
        for one, other in pairwise(family):
            next_sibling[one] = other
    return first_child, next_sibling


def mask(tree: Sequence[Node]) -> list[list[bool]]:
    """Row i, column j: node i sees node j, which is itself or one of its ancestors."""
    rows = []
    for node in range(len(tree)):
        seen, at = {node}, node
        while tree[at].parent >= 0:
            at = tree[at].parent
            seen.add(at)
        rows.append([column in seen for column in range(len(tree))])
    return rows


def walk(tree: Sequence[Node], choose: Callable[[int], int]) -> tuple[list[int], int]:
    """(the nodes that are accepted, the bonus token).

    ``choose(node)`` is the token that the target puts after that node: it is asked once for every accepted node, in
    path order, and never for another.
    """
    path = [ROOT]
    while True:
        token = choose(path[-1])
        following = [child for child in children(tree, path[-1]) if tree[child].token == token]
        if not following:
            return path, token
        path.append(following[0])


class _Heap:
    """Pops every prefix of finite log-prob in order. Each is pushed once, by its elder sibling or by its parent."""

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates
        self._entries: list[tuple[Key, tuple[int, ...]]] = []
        self._push((), None, 0)

    def pop(self) -> Prefix | None:
        if not self._entries:
            return None
        key, ranks = heapq.heappop(self._entries)
        self._push(ranks[:-1], key[2], ranks[-1] + 1)
        self._push(ranks, key, 0)
        return Prefix(ranks, key)

    def _push(self, above: tuple[int, ...], parent: Key | None, rank: int) -> None:
        """The child of ``above`` (whose key is ``parent``) that has this rank, where there is one."""
        key = _child_key(self._candidates, parent, rank)
        if key is not None:
            heapq.heappush(self._entries, (key, (*above, rank)))


def _child_key(candidates: Candidates, parent: Key | None, rank: int) -> Key | None:
    """The key of a prefix extended by one rank, None for the root's; None where there is no such candidate."""
    spent, depth = (parent[0], parent[1]) if parent else (0, 0)
    if depth == len(candidates) or rank >= len(candidates[depth]):
        return None
    logprob = candidates[depth][rank][1]
    return (spent + cost(logprob), depth + 1, parent, rank) if math.isfinite(logprob) else None


def _prefix(candidates: Candidates, ranks: Sequence[int]) -> Prefix | None:
    """The prefix of these ranks, from the root downwards; None where one of its candidates does not exist."""
    key: Key | None = None
    for rank in ranks:
        key = _child_key(candidates, key, rank)
        if key is None:
            return None
    return Prefix(tuple(ranks), key) if key else None


def _spine(candidates: Candidates, budget: int) -> list[Prefix]:
    forced = [_prefix(candidates, (0,) * depth) for depth in range(1, min(len(candidates), budget) + 1)]
    return [prefix for prefix in forced if prefix is not None]


def _every_prefix(candidates: Candidates) -> list[Prefix]:
    found = []
    for depth in range(1, len(candidates) + 1):
        for ranks in product(*(range(len(row)) for row in candidates[:depth])):
            found.append(_prefix(candidates, ranks))
    return [prefix for prefix in found if prefix is not None]


def _numbered(root: int, candidates: Candidates, prefixes: Sequence[Prefix]) -> list[Node]:
    number = {(): ROOT} | {prefix.ranks: place for place, prefix in enumerate(prefixes, 1)}
    nodes = [Node(root, -1, 0, 0, 0.0)]
    for prefix in prefixes:
        depth, rank = len(prefix.ranks), prefix.ranks[-1]
        token = candidates[depth - 1][rank][0]
        nodes.append(Node(token, number[prefix.ranks[:-1]], depth, rank, -prefix.key[0] * UNIT))
    return nodes
