"""The tree on its way through a step, in microseconds, and its throughput against heaps in plain Python.

Run by ``bench.py``, in the interpreter that has torch: ``PYTHONPATH=tests python tests/benchmarks/bench_tree.py``. One
batch of the size that the claim names (8 requests, block 16, topk 8), on the CPU or on the GPU that there is. All take
turns, and the shortest of their times counts. Ends with status 1 when the bound is missed.

Two heaps are measured, each from the same tensors to the same tensors, as a server would have to use it:

- *reference*: ``tests/oracles/heap_tree``, which makes the very same tree, ties and all. The bound is for this one.
- *bare*: the paper's procedure and nothing else. It adds floats and leaves ties to chance, so ranks of a
  tensor-parallel server could build different trees; and on a GPU a heap makes every step wait for the device.
"""

from __future__ import annotations

import argparse
import heapq
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from oracles.heap_tree import best_first_tree

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "patchsets" / "ddtree" / "runtime"))
from ddtree_tree import DraftTree, ancestors, build_tree, links, packed_mask, visibility, walk

REQUESTS, POSITIONS, TOPK, VOCABULARY = 8, 15, 8, 32_000
BUDGETS = (16, 64, 256)
BOUND, BOUND_AT = 10.0, 64  # times the reference's throughput, at this budget
PARTS = ("build", "ancestors", "visibility", "packed mask", "links", "walk")
HEAPS = ("reference heap", "bare heap")

Fields = list[tuple[float, ...]]  # one request's nodes: token, parent, depth, rank, score


class Bench:
    """One batch, and everything that is timed on it."""

    def __init__(self, device: str, budget: int) -> None:
        generator = torch.Generator().manual_seed(budget)
        noise = torch.randn(REQUESTS, POSITIONS, VOCABULARY, generator=generator) * 3
        logprobs, tokens = noise.log_softmax(-1).topk(TOPK)
        self.device, self.budget = device, budget
        self.logprobs, self.tokens = logprobs.to(device), tokens.to(device)
        self.roots = torch.zeros(REQUESTS, dtype=torch.int64, device=device)
        prefixes = torch.randint(100, 2000, (REQUESTS,), generator=generator)
        self.prefixes, width = prefixes.to(device), budget + 1
        self.total = int((width * (prefixes + width)).sum())
        self.tree = self.build()
        self.table = ancestors(self.tree)
        self.seen = visibility(self.table)
        self.choices = self.tree.tokens.roll(-1, dims=1)

    def build(self) -> DraftTree:
        return build_tree(self.roots, self.tokens, self.logprobs, self.budget)

    def contenders(self) -> Mapping[str, Callable[[], object]]:
        return {
            "build": self.build,
            "ancestors": lambda: ancestors(self.tree),
            "visibility": lambda: visibility(self.table),
            "packed mask": lambda: packed_mask(self.tree, self.seen, self.prefixes, self.total),
            "links": lambda: links(self.tree),
            "walk": lambda: walk(self.tree, self.table, self.choices),
            "reference heap": lambda: self.by_heap(reference),
            "bare heap": lambda: self.by_heap(bare),
        }

    def by_heap(self, heap: Callable[[list[list[int]], list[list[float]], int], Fields]) -> Sequence[Tensor]:
        requests = zip(self.tokens.tolist(), self.logprobs.tolist(), strict=True)
        rows = [zip(*heap(tokens, logprobs, self.budget), strict=True) for tokens, logprobs in requests]
        return [torch.tensor(field, device=self.device) for field in zip(*rows, strict=True)]

    def check(self) -> None:
        """The three make the same tree, or what is compared is not the same work."""
        ours = (self.tree.tokens, self.tree.parents, self.tree.depths, self.tree.ranks)
        for heap in (reference, bare):
            for mine, other in zip(ours, self.by_heap(heap), strict=False):
                assert torch.equal(mine, other), f"{heap.__name__} builds another tree"


def reference(tokens: list[list[int]], logprobs: list[list[float]], budget: int) -> Fields:
    candidates = [list(zip(*row, strict=True)) for row in zip(tokens, logprobs, strict=True)]
    return [(n.token, n.parent, n.depth, n.rank, n.score) for n in best_first_tree(0, candidates, budget)]


def bare(tokens: list[list[int]], logprobs: list[list[float]], budget: int) -> Fields:
    """An entry is (cost, depth, parent, rank): pop it, push its next sibling and its first child."""
    nodes: Fields = [(0, -1, 0, 0, 0.0)]
    heap = [(-logprobs[0][0], 1, 0, 0)]
    while heap and len(nodes) <= budget:
        cost, depth, parent, rank = heapq.heappop(heap)
        row = logprobs[depth - 1]
        if rank + 1 < len(row):
            heapq.heappush(heap, (cost + row[rank] - row[rank + 1], depth, parent, rank + 1))
        if depth < len(logprobs):
            heapq.heappush(heap, (cost - logprobs[depth][0], depth + 1, len(nodes), 0))
        nodes.append((tokens[depth - 1][rank], parent, depth, rank, -cost))
    return nodes


def measure(contenders: Mapping[str, Callable[[], object]], device: str, rounds: int) -> Mapping[str, float]:
    """The shortest time of each, in microseconds."""
    shortest = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, run in contenders.items():
            _wait(device)
            begun = time.perf_counter()
            run()
            _wait(device)
            shortest[name] = min(shortest[name], time.perf_counter() - begun)
    return {name: seconds * 1e6 for name, seconds in shortest.items()}


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def draw(found: Mapping[int, Mapping[str, float]], device: str) -> None:
    place = torch.cuda.get_device_name() if device == "cuda" else f"CPU, {torch.get_num_threads()} thread"
    print(f"tree, {REQUESTS} requests, block {POSITIONS + 1}, topk {TOPK}, on {place}: microseconds a step, shortest")
    print(f"{'budget':18}" + "".join(f"{budget:>10}" for budget in found))
    for name in (*PARTS, "whole step", *HEAPS):
        print(f"{name:18}" + "".join(f"{times.get(name, whole(times)):>10.0f}" for times in found.values()))
    for heap in HEAPS:
        ratios = "".join(f"{times[heap] / times['build']:>9.1f}×" for times in found.values())
        print(f"{'build to ' + heap.removesuffix(' heap'):18}{ratios}")


def whole(times: Mapping[str, float]) -> float:
    """All that a step does with its tree."""
    return sum(times[part] for part in PARTS)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures the tree.")
    parser.add_argument("--times", type=int, default=200, help="how often each is run [200]")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where [cpu]")
    given = parser.parse_args()
    torch.set_num_threads(1)
    found = {}
    for budget in BUDGETS:
        bench = Bench(given.device, budget)
        bench.check()
        found[budget] = measure(bench.contenders(), given.device, given.times)
    draw(found, given.device)
    ratio = found[BOUND_AT]["reference heap"] / found[BOUND_AT]["build"]
    verdict = "held" if ratio >= BOUND else "MISSED"
    print(f"build at budget {BOUND_AT}: {ratio:.1f} times the reference's throughput, bound {BOUND:g}: {verdict}")
    return 0 if ratio >= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
