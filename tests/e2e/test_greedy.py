"""Greedy DDTREE emits, token for token, what the target emits without speculation, and DFLASH too.

In a batch of four, and alone; from 0.5.14 on with the scheduler's overlap, which is its default. On every release the
e2e tier asks it of five shapes, each in a server of its width (tests/releases/test_round_trip.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from scripts import (
    ALONE,
    BLOCK,
    PROMPTS,
    Script,
    accept_lengths,
    assert_sound,
    outputs,
    requests,
    steps,
    tree_flags,
    unequal_and_shared,
)

from sglang_releases import ENDS, SUPPORTED

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

WIDTHS = [(BLOCK - 1, 1), (16, 4)]  # a chain, and a tree, each in a server of its width
SHAPES = [(budget, topk) for budget in (1, BLOCK - 1, 16, 40) for topk in (1, 4, 8)]  # the last is the largest
SOME_SHAPES = [(1, 4), (BLOCK - 1, 8), (40, 8)]

Play = Callable[..., dict[str, Any]]


@pytest.mark.parametrize("version", ENDS)
def test_dflash_emits_what_the_target_emits(version: str, play: Play) -> None:
    plain = play(version, "NONE", script=unequal_and_shared())
    chain = play(version, "DFLASH", script=unequal_and_shared())
    assert_sound(chain)
    assert outputs(chain) == outputs(plain)
    assert_not_vacuous(plain, chain)


@pytest.mark.parametrize(("budget", "topk"), WIDTHS)
@pytest.mark.parametrize("version", ENDS)
def test_a_tree_emits_what_the_target_emits(version: str, budget: int, topk: int, play: Play) -> None:
    plain = play(version, "NONE", script=unequal_and_shared())
    tree = play(version, "DDTREE", *tree_flags(budget, topk), script=unequal_and_shared())
    assert_sound(tree)
    assert outputs(tree) == outputs(plain)


@pytest.mark.parametrize(
    ("version", "shapes"), [(version, SHAPES if version == SUPPORTED[-1] else SOME_SHAPES) for version in SUPPORTED]
)
def test_trees_of_every_shape_emit_what_the_target_emits(
    version: str, shapes: list[tuple[int, int]], play: Play
) -> None:
    """In a server of the largest, the smaller ones padded to its width: four requests, and one alone."""
    plain = outputs(play(version, "NONE", script=unequal_and_shared()))
    script: Script = []
    for budget, topk in shapes:
        name = f"{budget}-{topk}-"
        script += [
            {"shape": [budget, topk], "requests": requests(f"{name}r", tokens=4)},
            {"requests": [{"name": f"{name}s0", "ids": ALONE, "max_new_tokens": 4}]},
        ]
    tree = play(version, "DDTREE", *tree_flags(*shapes[-1]), script=script)
    assert_sound(tree)
    assert outputs(tree) == {f"{b}-{k}-{name}": output[:4] for b, k in shapes for name, output in plain.items()}
    assert len({steps({"rounds": [round_]}) for round_ in tree["rounds"][::2]}) > 1  # the shapes are not all one


@pytest.mark.parametrize("version", [*ENDS, "0.5.14"])
def test_a_drafter_of_one_token_a_block(version: str, play: Play) -> None:
    """Every tree is the root with children: the narrowest blocks and the shortest paths that there are."""
    models = {"block_size": 2}
    plain = play(version, "NONE", script=unequal_and_shared(), models=models)
    tree = play(version, "DDTREE", *tree_flags(3, 4), script=unequal_and_shared(), models=models)
    assert_sound(tree)
    assert outputs(tree) == outputs(plain)
    assert {length for lengths in accept_lengths(tree).values() for length in lengths} == {1, 2}


def assert_not_vacuous(plain: dict[str, Any], chain: dict[str, Any]) -> None:
    """The prompts are unequal, the second round finds its prefix cached, every acceptance length occurs."""
    assert len({len(ids) for ids in PROMPTS}) > 2
    assert all(answer["cached_tokens"] >= 20 for answer in plain["rounds"][1].values())
    lengths = {
        length for round_ in chain["rounds"] for answer in round_.values() for length in answer["accept_lengths"]
    }
    assert lengths == set(range(1, BLOCK + 1))
