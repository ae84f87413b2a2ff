"""What the target says after every node of random trees, and what it says after the same tokens alone."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import scenarios
import torch
from ddtree_patch_probe.engine import Engine, Request

TESTS = Path(__file__).resolve().parents[2]
sys.path.append(str(TESTS))

SHAPES = ("random", "star", "two branches", "chain", "random", "root alone")  # one a step


@dataclass
class Step:
    """One verify step of a batch."""

    shape: str
    names: list[str]  # of the requests
    prefixes: list[int] = field(default_factory=list)  # the number of tokens before each root
    tree: Any = None  # ddtree_tree.DraftTree
    logits: dict[str, torch.Tensor] = field(default_factory=dict)  # by what was changed in the tree: [bs, W, V]


def compare(
    requests: list[dict[str, Any]], flags: Sequence[str], width: int, seed: int = 1, plant: str = ""
) -> list[dict[str, Any]]:
    """For every request and step: differences of logits, each the largest of any token.

    Random trees of at most ``width`` nodes, however deep, take the place of drafted ones in real requests. Every step
    is verified three times from the same state: with other tokens in the padding, with another token in node 1, and
    last as it is.
    """
    engine = scenarios.start("DDTREE", flags, {"block_size": width})
    if plant:
        getattr(importlib.import_module("faults"), plant)(engine)
    steps = _watch(engine, torch.Generator().manual_seed(seed))
    engine.generate(*(Request(**fields) for fields in requests))
    from oracles.dflash_models import Target

    target = Target(Path(engine.server_args.model_path))
    tokens = {name: [*request.origin_input_ids, *request.output_ids] for name, request in engine.requests.items()}
    return [
        _measure(step, place, tokens[name][: step.prefixes[place]], target)
        for step in steps
        for place, name in enumerate(step.names)
    ]


def _watch(engine: Engine, random: torch.Generator) -> list[Step]:
    """The steps, filled while the engine runs."""
    steps: list[Step] = []
    vocabulary = int(engine.scheduler.model_config.vocab_size)
    target = engine.scheduler.tp_worker.model_runner
    upstream = target.forward

    def begin(batch: Any) -> None:
        if batch.forward_mode.is_decode():
            steps.append(Step(SHAPES[len(steps) % len(SHAPES)], [request.rid for request in batch.reqs]))

    def draft(roots: torch.Tensor) -> Any:
        steps[-1].tree = _tree(steps[-1].shape, roots, engine.worker.ddtree.width, vocabulary, random)
        return steps[-1].tree

    def forward(batch: Any, *args: Any, **kwargs: Any) -> Any:
        if not batch.forward_mode.is_target_verify():
            return upstream(batch, *args, **kwargs)
        tree, tokens = steps[-1].tree, batch.input_ids
        steps[-1].prefixes = batch.seq_lens.tolist()
        for change, where in {"padding": ~tree.is_node, "node 1": _is_node_1(tree), "": None}.items():
            batch.input_ids = tokens if where is None else _changed(tokens, where, vocabulary)
            output = upstream(batch, *args, **kwargs)
            steps[-1].logits[change] = output.logits_output.next_token_logits.view(*tree.tokens.shape, -1).clone()
        return output

    engine.before_batch.append(begin)
    engine.worker.ddtree.draft, target.forward = draft, forward
    return steps


def _is_node_1(tree: Any) -> torch.Tensor:
    return tree.is_node & (torch.arange(tree.tokens.shape[1]) == 1)


def _changed(tokens: torch.Tensor, where: torch.Tensor, vocabulary: int) -> torch.Tensor:
    return torch.where(where.view(-1), (tokens + vocabulary // 2) % vocabulary, tokens)


def _tree(shape: str, roots: torch.Tensor, width: int, vocabulary: int, random: torch.Generator) -> Any:
    """Trees of one shape; every second request's has padding."""
    from sglang.srt.speculative.ddtree_tree import DraftTree

    bs = len(roots)
    tokens, parents, depths = (
        roots[:, None].repeat(1, width),
        torch.full((bs, width), -1),
        torch.zeros(bs, width).long(),
    )
    ranks = torch.full((bs, width), -1)
    ranks[:, 0] = 0
    for request in range(bs):
        size = 1 if shape == "root alone" else width - request % 2 * (width // 3)
        tokens[request, 1:size] = torch.randperm(vocabulary, generator=random)[: size - 1]
        for node in range(1, size):
            parent = _parent(shape, node, random)
            parents[request, node], depths[request, node] = parent, depths[request, parent] + 1
            ranks[request, node] = (parents[request, :node] == parent).sum()
    return DraftTree(tokens, parents, depths, ranks, torch.zeros(bs, width), max(1, int(depths.max())))


def _parent(shape: str, node: int, random: torch.Generator) -> int:
    if shape == "random":
        return int(torch.randint(node, (1,), generator=random))
    return {"star": 0, "two branches": max(0, node - 2), "chain": node - 1}[shape]


def _measure(step: Step, request: int, prefix: list[int], target: Any) -> dict[str, Any]:
    tokens, parents = step.tree.tokens[request].tolist(), step.tree.parents[request].tolist()
    size = int(step.tree.is_node[request].sum())
    lines = [_line(node, parents) for node in range(size)]
    before = target.extend(None, prefix)
    logits = {change: found[request, :size] for change, found in step.logits.items()}
    plain = torch.stack([target.extend(before, [tokens[at] for at in line]).logits for line in lines])
    change = _difference(logits["node 1"], logits[""])
    return {
        "shape": step.shape,
        "prefix": len(prefix),
        "padding": len(tokens) - size,
        "from_plain": _difference(logits[""], plain),
        # Rows before a node that are not its ancestors: as many a causal mask would show it besides.
        "others_before": [node + 1 - len(line) for node, line in enumerate(lines)],
        "by_padding": max(_difference(logits["padding"], logits[""])),
        "by_node_1": [difference for line, difference in zip(lines, change, strict=True) if 1 in line],
        "by_node_1_elsewhere": [difference for line, difference in zip(lines, change, strict=True) if 1 not in line],
    }


def _line(node: int, parents: list[int]) -> list[int]:
    """From the root to the node."""
    return [*_line(parents[node], parents), node] if node else [0]


def _difference(one: torch.Tensor, other: torch.Tensor) -> list[float]:
    """Of each row, the largest of any token."""
    return [float(row) for row in (one - other).abs().amax(-1)]
