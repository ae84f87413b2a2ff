"""A tree that is a chain accepts, step by step, what DFLASH accepts; with the spine too.

On the releases between, the e2e tier asks the same (tests/releases/test_round_trip.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from scripts import BLOCK, accept_lengths, assert_sound, outputs, tree_flags, unequal_and_shared

from sglang_releases import ENDS

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]


@pytest.mark.parametrize("spine", ["0", "1"])
@pytest.mark.parametrize("version", ENDS)
def test_a_chain_shaped_tree_is_dflash(version: str, spine: str, play: Callable[..., dict[str, Any]]) -> None:
    chain = play(version, "DFLASH", script=unequal_and_shared())
    more = {"environment": {"SGLANG_DDTREE_SPINE": spine}} if spine == "1" else {}
    tree = play(version, "DDTREE", *tree_flags(BLOCK - 1, 1), script=unequal_and_shared(), **more)
    assert_sound(tree)
    assert outputs(tree) == outputs(chain)
    assert accept_lengths(tree) == accept_lengths(chain)
