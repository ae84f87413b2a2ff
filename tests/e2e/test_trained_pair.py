"""Acceptance on the trained pair: step by step what an independent decode in plain torch drafts and accepts.

Random weights show that tokens are right; only a trained drafter shows that the tree is the one that it should be, and
greedy equality alone misses every fault on the draft side.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_server import EngineServer
from scripts import tree_flags

from sglang_releases import SUPPORTED

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

PAIR = Path(__file__).resolve().parents[1] / "models" / "tiny-pair"
PROMPTS: list[dict[str, Any]] = json.loads((PAIR / "prompts.json").read_text("utf-8"))
CHOSEN = [PROMPTS[number] for number in (0, 1, 4, 5, 8, 9)]  # two of json, code and prose each
PAIR_BLOCK = 8
TOKENS = 32
LIMIT = 900.0
ARGUMENTS = {"folder": str(PAIR), "prompts": [item["prompt"] for item in CHOSEN], "tokens": TOKENS}

Engines = Callable[..., EngineServer]


def decoded(engine: EngineServer, spine: bool, **arguments: Any) -> list[dict[str, Any]]:
    environment = {"SGLANG_DDTREE_SELF_CHECK": "0", "SGLANG_DDTREE_SPINE": "1" if spine else "0"}
    value = engine.call("pair.decode", environment, time_limit=LIMIT, **ARGUMENTS, **arguments)
    assert isinstance(value, list)
    return value


@pytest.fixture(scope="module")
def expected(engines: Engines) -> Callable[..., list[dict[str, Any]]]:
    """``expected(budget, spine)``: what the independent decode gives; computed once."""
    results: dict[tuple[int, bool], list[dict[str, Any]]] = {}

    def get(budget: int, spine: bool) -> list[dict[str, Any]]:
        key = budget, spine
        if key not in results:
            server = engines(SUPPORTED[-1])
            results[key] = server.call("pair.expect", time_limit=LIMIT, **ARGUMENTS, budget=budget, spine=spine)
        return results[key]

    return get


@pytest.mark.parametrize("version", SUPPORTED)
def test_dflash_takes_the_steps_that_it_takes_offline(
    version: str, engines: Engines, expected: Callable[..., list[dict[str, Any]]]
) -> None:
    engine, offline = decoded(engines(version), False, algorithm="DFLASH"), expected(0, False)
    for prompt, here, there in zip(CHOSEN, engine, offline, strict=True):
        assert here["output"] == there["output"] == prompt["greedy"][:TOKENS], prompt["name"]
        assert here["accept_lengths"] == there["accept_lengths"], prompt["name"]


@pytest.mark.parametrize("spine", [False, True], ids=["best-first", "spine"])
@pytest.mark.parametrize("budget", [7, 16, 32])
@pytest.mark.parametrize("version", SUPPORTED)
def test_ddtree_drafts_and_accepts_what_an_exact_tree_does(
    version: str, budget: int, spine: bool, engines: Engines, expected: Callable[..., list[dict[str, Any]]]
) -> None:
    engine = decoded(engines(version), spine, algorithm="DDTREE", flags=list(tree_flags(budget, 8)))
    offline, chain = expected(budget, spine), expected(0, False)
    for prompt, here, there in zip(CHOSEN, engine, offline, strict=True):
        assert here["output"] == prompt["greedy"][:TOKENS], prompt["name"]
        assert here["verify_count"] == there["verify_count"], prompt["name"]
        assert here["accept_lengths"] == there["accept_lengths"], prompt["name"]
        assert here["trees"] == there["trees"], prompt["name"]
    steps, chain_steps = (sum(one["verify_count"] for one in found) for found in (engine, chain))
    if spine and budget == PAIR_BLOCK - 1:  # the spine alone fills the tree, which is then DFLASH's chain
        assert steps == chain_steps
    else:
        assert steps < chain_steps
