"""Greedy DDTREE emits, token for token, what the target emits without speculation, and DFLASH too.

In a batch of four, and alone; from 0.5.14 on with the scheduler's overlap, which is its default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from scripts import BLOCK, PROMPTS, assert_sound, outputs, tree_flags, unequal_and_shared

from sglang_releases import SUPPORTED

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

ALL_SHAPES = [(budget, topk) for budget in (1, BLOCK - 1, 16, 40) for topk in (1, 4, 8)]
CORE_SHAPES = [(BLOCK - 1, 1), (16, 4)]  # a chain, and a tree
FIRST_AND_LAST = SUPPORTED[0], SUPPORTED[-1]
CASES = [
    (version, *shape) for version in SUPPORTED for shape in (ALL_SHAPES if version in FIRST_AND_LAST else CORE_SHAPES)
]

Play = Callable[..., dict[str, Any]]


@pytest.mark.parametrize("version", SUPPORTED)
def test_dflash_emits_what_the_target_emits(version: str, play: Play) -> None:
    plain = play(version, "NONE", script=unequal_and_shared())
    chain = play(version, "DFLASH", script=unequal_and_shared())
    assert_sound(chain)
    assert outputs(chain) == outputs(plain)
    assert_not_vacuous(plain, chain)


@pytest.mark.parametrize(("version", "budget", "topk"), CASES)
def test_a_tree_emits_what_the_target_emits(version: str, budget: int, topk: int, play: Play) -> None:
    plain = play(version, "NONE", script=unequal_and_shared())
    tree = play(version, "DDTREE", *tree_flags(budget, topk), script=unequal_and_shared())
    assert_sound(tree)
    assert outputs(tree) == outputs(plain)


def assert_not_vacuous(plain: dict[str, Any], chain: dict[str, Any]) -> None:
    """The prompts are unequal, the second round finds its prefix cached, every acceptance length occurs."""
    assert len({len(ids) for ids in PROMPTS}) > 2
    assert all(answer["cached_tokens"] >= 20 for answer in plain["rounds"][1].values())
    lengths = {
        length for round_ in chain["rounds"] for answer in round_.values() for length in answer["accept_lengths"]
    }
    assert lengths == set(range(1, BLOCK + 1))
