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
CHOSEN = [PROMPTS[number] for number in (0, 4, 8)]  # json, code and prose; `make acceptance` takes them all
PAIR_BLOCK = 8
TOKENS = 32
LIMIT = 900.0
SETTINGS = [(7, True), (16, False), (16, True), (32, False)]  # `make acceptance` takes all six
FEW = 1  # prompts that every release decodes, in one setting

Case = tuple[str, int, bool, int]  # release, budget, spine, prompts
LARGE: list[Case] = [(SUPPORTED[-1], *setting, len(CHOSEN)) for setting in SETTINGS]
SMALL: list[Case] = [(version, 16, False, FEW) for version in SUPPORTED[:-1]]

Engines = Callable[..., EngineServer]


def chosen(prompts: int) -> list[dict[str, Any]]:
    return CHOSEN[:prompts]


def asked(prompts: int) -> dict[str, Any]:
    tokens = TOKENS if prompts == len(CHOSEN) else TOKENS // 2
    return {"folder": str(PAIR), "prompts": [item["prompt"] for item in chosen(prompts)], "tokens": tokens}


def decoded(engine: EngineServer, spine: bool, prompts: int, **arguments: Any) -> list[dict[str, Any]]:
    environment = {"SGLANG_DDTREE_SELF_CHECK": "0", "SGLANG_DDTREE_SPINE": "1" if spine else "0"}
    value = engine.call("pair.decode", environment, time_limit=LIMIT, **asked(prompts), **arguments)
    assert isinstance(value, list)
    return value


@pytest.fixture(scope="module")
def expected(engines: Engines) -> Callable[..., list[dict[str, Any]]]:
    """``expected(budget, spine, prompts)``: what the independent decode gives; computed once."""
    results: dict[tuple[int, bool, int], list[dict[str, Any]]] = {}

    def get(version: str, budget: int, spine: bool, prompts: int) -> list[dict[str, Any]]:
        key = budget, spine, prompts
        if key not in results:
            results[key] = engines(version).call(
                "pair.expect", time_limit=LIMIT, **asked(prompts), budget=budget, spine=spine
            )
        return results[key]

    return get


@pytest.mark.parametrize("version", [SUPPORTED[0], SUPPORTED[-1]])
def test_dflash_takes_the_steps_that_it_takes_offline(
    version: str, engines: Engines, expected: Callable[..., list[dict[str, Any]]]
) -> None:
    prompts = len(CHOSEN)
    engine = decoded(engines(version), False, prompts, algorithm="DFLASH")
    offline = expected(version, 0, False, prompts)
    for prompt, here, there in zip(chosen(prompts), engine, offline, strict=True):
        assert here["output"] == there["output"] == prompt["greedy"][:TOKENS], prompt["name"]
        assert here["accept_lengths"] == there["accept_lengths"], prompt["name"]


@pytest.mark.parametrize(("version", "budget", "spine", "prompts"), LARGE + SMALL)
def test_ddtree_drafts_and_accepts_what_an_exact_tree_does(
    version: str,
    budget: int,
    spine: bool,
    prompts: int,
    engines: Engines,
    expected: Callable[..., list[dict[str, Any]]],
) -> None:
    engine = decoded(engines(version), spine, prompts, algorithm="DDTREE", flags=list(tree_flags(budget, 8)))
    offline, chain = expected(version, budget, spine, prompts), expected(version, 0, False, prompts)
    for prompt, here, there in zip(chosen(prompts), engine, offline, strict=True):
        assert here["output"] == there["output"] == prompt["greedy"][: len(here["output"])], prompt["name"]
        assert here["verify_count"] == there["verify_count"], prompt["name"]
        assert here["accept_lengths"] == there["accept_lengths"], prompt["name"]
        assert here["trees"] == there["trees"], prompt["name"]
    steps, chain_steps = (sum(one["verify_count"] for one in found) for found in (engine, chain))
    if spine and budget == PAIR_BLOCK - 1:  # the spine alone fills the tree, which is then DFLASH's chain
        assert steps == chain_steps
    else:
        assert steps < chain_steps
