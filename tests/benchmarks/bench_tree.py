"""The tree on its way through a step, in microseconds, and its throughput against plain Python.

Run by ``bench.py``, in the interpreter that has torch: ``PYTHONPATH=tests python tests/benchmarks/bench_tree.py``. One
batch of the size that the claim names (8 requests, block 16, topk 8), on the CPU or on the GPU that there is. All take
turns, and the shortest of their times counts; on the CPU it is the time of the one thread that works, so that what
else the machine does adds little. Ends with status 1 when the bound is missed.

1. *From the draft head's logits to the tree*: the best candidates of every position with their log-probabilities over
   the whole vocabulary, then the tree. The reference does the same in plain Python from the same logits as lists:
   ``math.exp`` and ``math.log``, ``heapq.nlargest``, then the heap of ``tests/oracles/heap_tree``, which makes the very
   same tree, ties and all. The bound is for this.
2. *From candidates to the tree*: the second half alone, from the same tensors to the same tensors, without a bound.
   Beside the reference heap a *bare* one, the paper's procedure and nothing else: it adds floats and leaves ties to
   chance, so ranks of a tensor-parallel server could build different trees.
3. *Share of a verify step*: all that a step does with its tree, against one target forward over the tree's rows. The
   forward is that of a model of 1.3 billion parameters in plain torch: one layer is timed and counted 28 times, and the
   head once. It stands for no engine; the drafter's forward is left out, which would make the share smaller.
"""

from __future__ import annotations

import argparse
import ctypes
import heapq
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention, silu

from oracles.heap_tree import best_first_tree

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "patchsets" / "ddtree" / "runtime"))
from ddtree_tree import DraftTree, ancestors, build_tree, links, packed_mask, top_candidates, visibility, walk

REQUESTS, POSITIONS, TOPK, VOCABULARY = 8, 15, 8, 32_000
BUDGETS = (16, 64, 256)
ROWS_AT_ONCE = 64  # of the draft head's logits, as ddtree_worker has them
BOUND, BOUND_AT = 10.0, 64  # times the reference's throughput, at this budget
TREE = ("candidates", "build", "ancestors", "visibility", "packed mask", "links", "walk")
FROM_LOGITS, REFERENCE = "logits to tree", "plain Python"
HEAPS = ("reference heap", "bare heap")
SLOW = 25  # times as often is measured what is fast

Contenders = Mapping[str, Callable[[], object]]
Times = Mapping[str, float]  # microseconds, the shortest
Fields = list[tuple[float, ...]]  # one request's nodes: token, parent, depth, rank, score


class Bench:
    """One batch, and everything that is timed on it."""

    def __init__(self, device: str, budget: int) -> None:
        generator = torch.Generator().manual_seed(budget)
        logits = torch.randn(REQUESTS * POSITIONS, VOCABULARY, generator=generator) * 3
        self.device, self.budget = device, budget
        self.lists, self.logits = logits.tolist(), logits.to(device)
        self.roots = torch.zeros(REQUESTS, dtype=torch.int64, device=device)
        prefixes = torch.randint(100, 2000, (REQUESTS,), generator=generator)
        self.prefixes, width = prefixes.to(device), budget + 1
        self.total = int((width * (prefixes + width)).sum())
        self.tokens, self.logprobs = self.candidates()
        self.tree = self.build()
        self.table = ancestors(self.tree)
        self.seen = visibility(self.table)
        self.choices = self.tree.tokens.roll(-1, dims=1)

    def candidates(self) -> tuple[Tensor, Tensor]:
        parts = [top_candidates(part, TOPK) for part in self.logits.split(ROWS_AT_ONCE)]
        tokens, logprobs = (torch.cat(part).view(REQUESTS, POSITIONS, TOPK) for part in zip(*parts, strict=True))
        return tokens, logprobs

    def build(self) -> DraftTree:
        return build_tree(self.roots, self.tokens, self.logprobs, self.budget)

    def from_logits(self) -> DraftTree:
        return build_tree(self.roots, *self.candidates(), self.budget)

    def by_plain_python(self) -> Sequence[Fields]:
        rows = [plain_candidates(row) for row in self.lists]
        requests = [rows[first : first + POSITIONS] for first in range(0, len(rows), POSITIONS)]
        return [_fields(positions, self.budget) for positions in requests]

    def by_heap(self, heap: Callable[[list[list[int]], list[list[float]], int], Fields]) -> Sequence[Tensor]:
        requests = zip(self.tokens.tolist(), self.logprobs.tolist(), strict=True)
        rows = [zip(*heap(tokens, logprobs, self.budget), strict=True) for tokens, logprobs in requests]
        return [torch.tensor(field, device=self.device) for field in zip(*rows, strict=True)]

    def fast(self) -> Contenders:
        return {
            "candidates": self.candidates,
            "build": self.build,
            "ancestors": lambda: ancestors(self.tree),
            "visibility": lambda: visibility(self.table),
            "packed mask": lambda: packed_mask(self.seen, self.prefixes, self.total),
            "links": lambda: links(self.tree),
            "walk": lambda: walk(self.tree, self.table, self.choices),
            FROM_LOGITS: self.from_logits,
            "reference heap": lambda: self.by_heap(reference),
            "bare heap": lambda: self.by_heap(bare),
        }

    def slow(self) -> Contenders:
        return {REFERENCE: self.by_plain_python}

    def check(self) -> None:
        """They make the same tree, or what is compared is not the same work."""
        ours = (self.tree.tokens, self.tree.parents, self.tree.depths, self.tree.ranks)
        for heap in (reference, bare):
            for mine, other in zip(ours, self.by_heap(heap), strict=False):
                assert torch.equal(mine, other), f"{heap.__name__} builds another tree"
        # Python's log-sum-exp is in float64: sums may differ by rounding, and with them the order of near-ties.
        scores = torch.tensor([[node[-1] for node in request] for request in self.by_plain_python()])
        torch.testing.assert_close(scores, self.tree.scores.cpu(), atol=1e-4, rtol=0.0)


def plain_candidates(logits: list[float]) -> list[tuple[int, float]]:
    """One position's best tokens with their log-probabilities over the whole vocabulary, of equals the lowest first."""
    peak = max(logits)
    log_sum_exp = peak + math.log(sum(math.exp(logit - peak) for logit in logits))
    best = heapq.nlargest(TOPK, range(len(logits)), key=logits.__getitem__)
    return [(token, logits[token] - log_sum_exp) for token in best]


def reference(tokens: list[list[int]], logprobs: list[list[float]], budget: int) -> Fields:
    return _fields([list(zip(*row, strict=True)) for row in zip(tokens, logprobs, strict=True)], budget)


def _fields(candidates: list[list[tuple[int, float]]], budget: int) -> Fields:
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


class Target:
    """One decoder layer and the head of a model of Qwen2.5-1.5B's shape, with this benchmark's vocabulary."""

    LAYERS, HIDDEN, INNER, HEADS, KV_HEADS, SIZE, PREFIX = 28, 1536, 8960, 12, 2, 128, 1024

    def __init__(self, device: str) -> None:
        self.device = device
        self.dtype = torch.bfloat16 if device == "cuda" else torch.float32
        kv = 2 * self.KV_HEADS * self.SIZE
        self.qkv, self.out = self._weight(self.HIDDEN + kv, self.HIDDEN), self._weight(self.HIDDEN, self.HIDDEN)
        self.up, self.down = self._weight(2 * self.INNER, self.HIDDEN), self._weight(self.HIDDEN, self.INNER)
        self.head = self._weight(VOCABULARY, self.HIDDEN)

    def contenders(self, seen: Tensor) -> Contenders:
        """`seen` is the trees' visibility, [requests, W, W]."""
        bs, width, _ = seen.shape
        hidden = self._weight(bs * width, self.HIDDEN)
        shape = (bs, self.KV_HEADS, self.PREFIX, self.SIZE)
        keys, values = torch.zeros(shape, dtype=self.dtype, device=self.device), self._weight(*shape)
        mask = torch.cat([seen.new_ones(bs, width, self.PREFIX), seen], dim=-1)[:, None]
        return {
            "one layer": lambda: self._layer(hidden, keys, values, mask),
            "head": lambda: hidden @ self.head.T,
        }

    def forward_time(self, times: Times) -> float:
        return self.LAYERS * times["one layer"] + times["head"]

    def _layer(self, hidden: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        bs, _, width, _ = mask.shape
        kv = self.KV_HEADS * self.SIZE
        query, key, value = (hidden @ self.qkv.T).split((self.HIDDEN, kv, kv), dim=-1)
        query, key, value = (part.view(bs, width, -1, self.SIZE).transpose(1, 2) for part in (query, key, value))
        key, value = torch.cat([keys, key], dim=2), torch.cat([values, value], dim=2)
        attended = scaled_dot_product_attention(query, key, value, attn_mask=mask, enable_gqa=True)
        hidden = hidden + attended.transpose(1, 2).reshape(bs * width, -1) @ self.out.T
        gate, up = (hidden @ self.up.T).chunk(2, dim=-1)
        return hidden + (silu(gate) * up) @ self.down.T

    def _weight(self, *shape: int) -> Tensor:
        return torch.randn(shape, dtype=self.dtype, device=self.device) * 0.02


def measure(contenders: Contenders, device: str, rounds: int) -> Times:
    now = time.thread_time if device == "cpu" else time.perf_counter
    shortest = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, run in contenders.items():
            _wait(device)
            begun = now()
            run()
            _wait(device)
            shortest[name] = min(shortest[name], now() - begun)
    return {name: seconds * 1e6 for name, seconds in shortest.items()}


def keep_freed_memory() -> None:
    """Let this process use the memory of a tensor that is gone for the next one, as the allocators of servers do.

    glibc may hand it back to the kernel instead, and then a tensor's pages take longer to come than to be worked on.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(-4, 0)  # M_MMAP_MAX
        mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def draw(found: Mapping[int, Times], device: str, target: Target) -> None:
    place = torch.cuda.get_device_name() if device == "cuda" else "the CPU, one thread"
    print(f"{REQUESTS} requests, block {POSITIONS + 1}, topk {TOPK}, vocabulary {VOCABULARY}, {target.dtype} target,")
    print(f"on {place}, torch {torch.__version__}: microseconds, the shortest")
    _row("budget", [str(budget) for budget in found])
    for name in (FROM_LOGITS, REFERENCE, *TREE, *HEAPS):
        _row(name, [f"{times[name]:.0f}" for times in found.values()])
    _row("all tree work of a step", [f"{tree_work(times):.0f}" for times in found.values()])
    _row("target forward", [f"{target.forward_time(times):.0f}" for times in found.values()])
    _row("share of tree work", [f"{100 * share(target, times):.2f} %" for times in found.values()])
    _row("logits to tree, throughput", [f"{ratio(times):.1f}×" for times in found.values()])
    for heap in HEAPS:
        _row(f"build alone, to {heap}", [f"{times[heap] / times['build']:.1f}×" for times in found.values()])


def _row(name: str, cells: Sequence[str]) -> None:
    print(f"{name:28}" + "".join(f"{cell:>12}" for cell in cells))


def ratio(times: Times) -> float:
    """How many times the reference's throughput, from the logits to the tree."""
    return times[REFERENCE] / times[FROM_LOGITS]


def tree_work(times: Times) -> float:
    """All that a step does with its tree."""
    return sum(times[part] for part in TREE)


def share(target: Target, times: Times) -> float:
    """Of a step that is tree work and one target forward."""
    return tree_work(times) / (tree_work(times) + target.forward_time(times))


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures the tree.")
    parser.add_argument("--times", type=int, default=100, help="how often is measured what is fast [100]")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where [cpu]")
    given = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    found, target = {}, Target(given.device)
    for budget in BUDGETS:
        print(f"budget {budget}", file=sys.stderr, flush=True)
        bench = Bench(given.device, budget)
        bench.check()
        seldom = max(2, given.times // SLOW)
        found[budget] = {
            **measure(bench.fast(), given.device, given.times),
            **measure(bench.slow(), given.device, seldom),
            **measure(target.contenders(bench.seen), given.device, 2 if given.device == "cpu" else given.times),
        }
    draw(found, given.device, target)
    gained = ratio(found[BOUND_AT])
    verdict = "held" if gained >= BOUND else "MISSED"
    print(f"budget {BOUND_AT}: {gained:.1f} times the throughput of plain Python, bound {BOUND:g}: {verdict}")
    return 0 if verdict == "held" else 1


if __name__ == "__main__":
    with torch.inference_mode():
        sys.exit(main())
