"""The trained pair in the engine, and beside it the same decoding in plain torch."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ddtree_patch_probe.engine import Engine, Request
from ddtree_patch_probe.flags import server_flags
from ddtree_patch_probe.models import Checkpoints
from ddtree_patch_probe.trees import TreeWatch

TESTS = Path(__file__).resolve().parents[2]
sys.path.append(str(TESTS))

ROOM = (
    *("--max-total-tokens", "8192", "--max-running-requests", "16", "--context-length", "512"),
    *("--chunked-prefill-size", "512"),
)


def decode(
    folder: str, prompts: list[list[int]], tokens: int, algorithm: str, flags: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """For every prompt: the tokens, the accept lengths, and the drafted tree of every step as (token, parent) pairs."""
    _let_the_drafter_find_its_rope_theta()
    _attend_in_large_blocks()
    models = Checkpoints(str(Path(folder) / "target"), str(Path(folder) / "draft"))
    engine = Engine(server_flags(models, algorithm, (*ROOM, *flags)))
    watched = TreeWatch(engine).steps if algorithm == "DDTREE" else {}
    requests = [Request(f"r{number:02d}", ids, tokens) for number, ids in enumerate(prompts)]
    return [
        {
            "output": answer.output,
            "accept_lengths": answer.accept_lengths,
            "verify_count": answer.verify_count,
            "trees": [[[node.token, node.parent] for node in step.nodes] for step in watched.get(answer.name, ())],
        }
        for answer in engine.generate(*requests)
    ]


def expect(
    folder: str, prompts: list[list[int]], tokens: int, budget: int = 0, topk: int = 8, spine: bool = False
) -> list[dict[str, Any]]:
    """The same of an independent decode with an exact best-first tree, or with DFLASH's chain where `budget` is 0."""
    from oracles.decode import Chain, Limits, Tree, decode_speculatively
    from oracles.dflash_models import load_pair

    pair = load_pair(Path(folder))
    proposal = Tree(budget, topk, spine) if budget else Chain()
    decoded = [decode_speculatively(pair, ids, proposal, Limits(tokens)) for ids in prompts]
    return [
        {
            "output": list(one.tokens),
            "accept_lengths": [len(step.emitted) for step in one.steps],
            "verify_count": one.verify_count,
            "trees": [[[node.token, node.parent] for node in step.tree] for step in one.steps],
        }
        for one in decoded
    ]


def _let_the_drafter_find_its_rope_theta() -> None:
    """0.5.11 to 0.5.12.post1 read it where transformers 5 no longer keeps it, and then take one million."""
    from transformers import Qwen3Config

    def rope_theta(config: Any) -> float:
        try:
            return float(config.rope_parameters["rope_theta"])
        except (KeyError, TypeError) as error:  # it is being made
            raise AttributeError("rope_theta") from error

    if not hasattr(Qwen3Config, "rope_theta"):
        Qwen3Config.rope_theta = property(rope_theta)


def _attend_in_large_blocks() -> None:
    """The interpreter's time goes by the number of operations, whatever their size: a prefix is one block, mostly."""
    for package in (
        "sglang.srt.layers.attention.triton_ops",
        "sglang.kernels.ops.attention",
    ):  # from 0.5.16 on the latter
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(f"{package}.extend_attention")
    name = "_get_block_sizes_for_extend_attention"
    holders = [module for module in list(sys.modules.values()) if name in vars(module)]
    (upstream,) = {getattr(module, name) for module in holders}

    def block_sizes(*lengths: int, **named: int) -> tuple[int, ...]:
        *dimensions, block_m, _, warps = upstream(*lengths, **named)
        return (*dimensions, block_m, 128, warps)

    for module in holders:
        setattr(module, name, block_sizes)
