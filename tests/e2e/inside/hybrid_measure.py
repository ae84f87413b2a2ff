"""What a hybrid target says after every node of random trees, and the states that it keeps after every step.

The reference is the same checkpoint in transformers, whose plain PyTorch has no trees and no states of nodes.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hybrid
import logits
import torch
from ddtree_patch_probe.engine import Engine, Request

SHAPES = ("random", "random", "two branches", "chain", "random", "root alone", "star", "random")  # one a step


@dataclass
class Step:
    """One verify step of a batch."""

    shape: str
    names: list[str]  # of the requests
    prefixes: list[int] = field(default_factory=list)  # the number of tokens before each root
    tree: Any = None  # ddtree_tree.DraftTree
    kept: list[int] = field(default_factory=list)  # the last accepted node of each request
    logits: torch.Tensor | None = None  # [bs, W, V]
    elsewhere: float = 0.0  # the change of the logits of nodes that do not descend from a perturbed, rejected one
    perturbed: list[torch.Tensor] = field(default_factory=list)  # states after a commit beside perturbed siblings
    states: list[torch.Tensor] = field(default_factory=list)  # those that were kept, [layers, bs, ...] a pool


def measure(
    requests: list[dict[str, Any]], flags: Sequence[str], width: int, steps: int = 6, **engine_fields: Any
) -> dict[str, Any]:
    """Differences from the reference, each the largest of any: of logits, of kept states, and by rejected siblings.

    Random trees of at most ``width`` nodes take the place of drafted ones, and paths to random nodes, mostly of another
    depth than their index, that of accepted ones.
    """
    engine = hybrid.start("DDTREE", flags, block_size=width, **engine_fields)
    taken = _watch(engine, torch.Generator().manual_seed(1))
    engine.submit(*(Request(**fields) for fields in requests))
    while len(taken) < steps or not taken[-1].states:
        engine.step()
    reference = _Reference(engine.server_args.model_path)
    tokens = {name: list(request.origin_input_ids) for name, request in engine.requests.items()}
    rows: list[dict[str, Any]] = []
    for step in taken[:steps]:
        rows += [_measure(step, place, tokens[name], reference) for place, name in enumerate(step.names)]
    windows = engine.scheduler.tp_worker.model_runner.req_to_token_pool.mamba_pool.mamba_cache.intermediate_conv_window
    return {
        "rows": rows,
        "dense": all(window.stride(2) >= window[0, 0, 0].numel() for window in windows),
        "overlap": bool(engine.scheduler.enable_overlap),
    }


def _watch(engine: Engine, random: torch.Generator) -> list[Step]:
    """The steps, filled while the engine runs."""
    steps: list[Step] = []
    vocabulary = int(engine.scheduler.model_config.vocab_size)
    runner = engine.scheduler.tp_worker.model_runner
    runtime, upstream = engine.worker.ddtree, runner.forward
    pool = runner.req_to_token_pool
    pools = [*pool.mamba_pool.mamba_cache.conv, pool.mamba_pool.mamba_cache.temporal]
    slots = torch.empty(0)

    def begin(batch: Any) -> None:
        if batch.forward_mode.is_decode():
            steps.append(Step(SHAPES[len(steps) % len(SHAPES)], [request.rid for request in batch.reqs]))

    def end(batch: Any) -> None:
        if steps and not steps[-1].states:
            steps[-1].states = read()

    def read() -> list[torch.Tensor]:
        return [states[:, slots].clone() for states in pools]

    def draft(roots: torch.Tensor) -> Any:
        steps[-1].tree = logits._tree(steps[-1].shape, roots, runtime.width, vocabulary, random)
        steps[-1].kept = [_kept(steps[-1].tree, request, random) for request in range(len(roots))]
        return steps[-1].tree

    def choices(info: Any, rows: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """The path to the kept node, and everywhere else a token that no node has."""
        tree, chosen = steps[-1].tree, torch.empty_like(steps[-1].tree.tokens)
        for request, node in enumerate(steps[-1].kept):
            path = logits._line(node, tree.parents[request].tolist())
            chosen[request] = min(set(range(vocabulary)) - set(tree.tokens[request].tolist()))
            chosen[request, path[:-1]] = tree.tokens[request, path[1:]]
        return chosen

    def forward(batch: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal slots
        if not batch.forward_mode.is_target_verify():
            return upstream(batch, *args, **kwargs)
        step = steps[-1]
        step.prefixes = batch.seq_lens.tolist()
        slots = pool.req_index_to_mamba_index_mapping[batch.req_pool_indices].long()
        before, tokens = read(), batch.input_ids

        def run(ids: torch.Tensor) -> tuple[Any, torch.Tensor]:
            for states, saved in zip(pools, before, strict=True):
                states[:, slots] = saved
            batch.input_ids = ids
            output = upstream(batch, *args, **kwargs)
            return output, output.logits_output.next_token_logits.view(*step.tree.tokens.shape, -1).clone()

        rejected, spared = _rejected(step)
        _, beside = run(torch.where(rejected.view(-1), (tokens + vocabulary // 2) % vocabulary, tokens))
        kept = torch.tensor(step.kept)
        runner.attn_backend.update_mamba_state_after_mtp_verify(kept, None, None, runner.model)
        step.perturbed = read()
        output, step.logits = run(tokens)
        step.elsewhere = float(((step.logits - beside).abs().amax(-1) * spared).max())
        return output

    engine.before_batch.append(begin)
    engine.after_batch.append(end)
    runtime.draft, runtime.choices, runner.forward = draft, choices, forward
    return steps


def _kept(tree: Any, request: int, random: torch.Generator) -> int:
    """A node to which the path is accepted: one whose depth is not its index, where there is one."""
    nodes = int(tree.is_node[request].sum())
    good = [node for node in range(nodes) if int(tree.depths[request, node]) != node] or list(range(nodes))
    return good[int(torch.randint(len(good), (1,), generator=random))]


def _rejected(step: Step) -> tuple[torch.Tensor, torch.Tensor]:
    """The nodes off the accepted path, bool [bs, W], and those that neither are any nor descend from one."""
    off = step.tree.is_node.clone()
    for request, node in enumerate(step.kept):
        off[request, logits._line(node, step.tree.parents[request].tolist())] = False
    return off, ~off & step.tree.is_node


class _Reference:
    """The checkpoint in transformers: logits after any of some continuations, and the states after a text."""

    def __init__(self, path: str) -> None:
        # Not by `transformers`' own look-up, in which SGLang has put configurations of its own.
        kind = json.loads(Path(path, "config.json").read_text(encoding="utf-8"))["model_type"]
        name = {"qwen3_next": "Qwen3Next", "nemotron_h": "NemotronH"}[kind]
        models = importlib.import_module(f"transformers.models.{kind}.modeling_{kind}")
        configs = importlib.import_module(f"transformers.models.{kind}.configuration_{kind}")
        config = getattr(configs, f"{name}Config").from_pretrained(path)
        config.chunk_size = 256  # of Mamba2: from one chunk to the next this version hands on a wrong state
        model = getattr(models, f"{name}ForCausalLM").from_pretrained(path, config=config, dtype=torch.float32)
        self.model = model.eval()

    @torch.no_grad()
    def logits(self, prefix: list[int], continuations: list[list[int]]) -> torch.Tensor:
        """After the last token of each continuation, [continuations, V]: what comes later in a row changes nothing."""
        longest = max(map(len, continuations))
        rows = torch.tensor([[*prefix, *each, *[0] * (longest - len(each))] for each in continuations])
        found = self.model(rows, use_cache=False).logits
        last = torch.tensor([len(prefix) + len(each) - 1 for each in continuations])
        return found[torch.arange(len(rows)), last]

    @torch.no_grad()
    def states(self, tokens: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Of convolutions and of recurrences after these tokens, one a layer."""
        cache = self.model(torch.tensor([tokens]), use_cache=True).past_key_values
        layers = [layer for layer in cache.layers if hasattr(layer, "recurrent_states")]
        return (
            torch.stack([layer.conv_states[0, :, 1:] for layer in layers]),
            torch.stack([layer.recurrent_states[0] for layer in layers]),
        )


def _measure(step: Step, place: int, tokens: list[int], reference: _Reference) -> dict[str, Any]:
    """Of one request. ``tokens`` are its own so far, the last one of which may be missing; those accepted are added."""
    assert step.logits is not None
    ids, parents = step.tree.tokens[place].tolist(), step.tree.parents[place].tolist()
    size, kept = int(step.tree.is_node[place].sum()), step.kept[place]
    assert len(tokens) == step.prefixes[place], "what was committed before is not what was measured"
    lines = [logits._line(node, parents) for node in range(size)]
    plain = reference.logits(tokens, [[ids[at] for at in line] for line in lines])
    tokens += [ids[at] for at in lines[kept]]
    conv, recurrence = reference.states(tokens)
    found_conv, found_recurrence = step.states[0][:, place], step.states[-1][:, place]
    return {
        "shape": step.shape,
        "kept": kept,
        "depth": len(lines[kept]) - 1,
        "from_plain": logits._difference(step.logits[place, :size], plain),
        "conv": float((found_conv - conv).abs().max()),
        # Some releases keep the two dimensions of a gated delta net the other way round.
        "recurrence": min(float((found_recurrence - way).abs().max()) for way in (recurrence, recurrence.mT)),
        "elsewhere": step.elsewhere,
        "by_siblings": max(
            float((one[:, place] - other[:, place]).abs().max())
            for one, other in zip(step.perturbed, step.states, strict=True)
        ),
    }
