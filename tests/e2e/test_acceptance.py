"""A tree needs fewer target forwards than the chain; with the spine no step accepts less than the chain would.

On the releases between, the e2e tier asks the same (tests/releases/test_round_trip.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from engine_server import EngineServer
from scripts import BLOCK, requests, steps, tree_flags

from sglang_releases import ENDS, SUPPORTED

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

SHAPES = [(BLOCK - 1, 4), (7, 4)]
CASES = [(version, *shape) for version in ENDS for shape in (SHAPES if version == SUPPORTED[-1] else SHAPES[1:2])]
WITHOUT_SPINE = [case for case in CASES if case[1] > BLOCK - 1]


@pytest.mark.parametrize(("version", "budget", "topk"), CASES)
def test_with_the_spine_no_step_accepts_less(
    version: str, budget: int, topk: int, engines: Callable[..., EngineServer]
) -> None:
    pairs = _tree_and_chain(engines(version), budget, topk, spine="1")
    assert all(tree >= chain for tree, chain in pairs)
    if budget > BLOCK - 1:  # else the spine is the whole tree
        assert sum(tree for tree, _ in pairs) > sum(chain for _, chain in pairs)


@pytest.mark.parametrize(("version", "budget", "topk"), WITHOUT_SPINE)
def test_without_the_spine_more_is_accepted_on_the_whole(
    version: str, budget: int, topk: int, engines: Callable[..., EngineServer], play: Callable[..., dict[str, Any]]
) -> None:
    pairs = _tree_and_chain(engines(version), budget, topk, spine="0")
    assert sum(tree for tree, _ in pairs) > sum(chain for _, chain in pairs)
    assert len(pairs) < steps(play(version, "DFLASH", script=[{"requests": requests()}]))


def _tree_and_chain(engine: EngineServer, budget: int, topk: int, spine: str) -> list[tuple[int, int]]:
    """For every step: the tokens that the tree emitted, and those that the chain would have from the same state."""
    environment = {"SGLANG_DDTREE_SELF_CHECK": "0", "SGLANG_DDTREE_SPINE": spine}
    run = engine.call("chains.observe", environment, requests=requests(), flags=list(tree_flags(budget, topk)))
    pairs = [(tree, chain) for request in run for tree, chain in request]
    assert any(chain > 1 for _, chain in pairs)
    return pairs
