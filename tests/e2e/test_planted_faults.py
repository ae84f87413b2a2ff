"""Each check fails where a fault of its kind is planted into the running engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from engine_server import EngineServer, InsideError
from scripts import BLOCK, Script, accept_lengths, assert_sound, compare_kv, outputs, requests, steps, tree_flags
from test_kv import TOLERANCE

from sglang_releases import BEFORE_OVERLAP, OVERLAPPING

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

EACH_WORKER = pytest.mark.parametrize("version", [BEFORE_OVERLAP[-1], OVERLAPPING[-1]])
TREE = tree_flags(16, 4)
SCRIPT: Script = [{"requests": requests()}]

Play = Callable[..., dict[str, Any]]


@EACH_WORKER
@pytest.mark.parametrize("fault", ["show_a_sibling", "keep_tree_order", "accept_a_sibling"])
def test_wrong_tokens_are_seen(version: str, fault: str, play: Play) -> None:
    plain = play(version, "NONE", script=SCRIPT)
    assert outputs(play(version, "DDTREE", *TREE, script=SCRIPT, plant=fault)) != outputs(plain)


@EACH_WORKER
@pytest.mark.parametrize(
    ("fault", "models"),
    [
        ("show_a_sibling", {"target"}),
        ("keep_tree_order", {"target", "draft"}),
        ("shift_hidden_rows", {"draft"}),
        ("keep_a_bonus_row", {"draft"}),
    ],
)
def test_wrong_kv_is_seen(version: str, fault: str, models: set[str], engines: Callable[..., EngineServer]) -> None:
    worst = compare_kv(engines(version), plant=fault)["worst"]
    assert models <= {label.split()[0] for label, difference in worst.items() if difference > 100 * TOLERANCE}


@EACH_WORKER
@pytest.mark.parametrize("fault", ["shift_hidden_rows", "keep_a_bonus_row"])
def test_a_drafter_that_is_given_the_wrong_rows_emits_the_right_tokens(version: str, fault: str, play: Play) -> None:
    """Why KV and acceptance are looked at too: greedy equality does not see a fault on the draft side."""
    plain = play(version, "NONE", script=SCRIPT)
    assert outputs(play(version, "DDTREE", *TREE, script=SCRIPT, plant=fault)) == outputs(plain)


@EACH_WORKER
def test_a_bonus_row_in_the_drafters_context_is_seen_in_what_is_accepted(version: str, play: Play) -> None:
    chain = play(version, "DFLASH", script=SCRIPT)
    tree = play(version, "DDTREE", *tree_flags(BLOCK - 1, 1), script=SCRIPT, plant="keep_a_bonus_row")
    assert outputs(tree) == outputs(chain)
    assert accept_lengths(tree) != accept_lengths(chain)


@EACH_WORKER
def test_lost_slots_are_seen(version: str, play: Play) -> None:
    try:
        run = play(version, "DDTREE", *TREE, script=SCRIPT, plant="keep_a_rejected_slot")
    except InsideError as error:  # SGLang's own check, when it is idle
        assert "leak" in str(error)
    else:
        assert any("nowhere" in fault for fault in run["faults"])


@EACH_WORKER
def test_double_frees_are_seen(version: str, play: Play) -> None:
    try:
        run = play(version, "DDTREE", *TREE, script=SCRIPT, plant="free_a_slot_twice")
    except InsideError as error:
        assert "leak" in str(error)
    else:
        with pytest.raises(AssertionError):
            assert_sound(run)
        assert any("free and free" in fault for fault in run["faults"])


@EACH_WORKER
def test_a_tree_without_siblings_is_seen(version: str, play: Play) -> None:
    tree = play(version, "DDTREE", *TREE, script=SCRIPT)
    chain = play(version, "DDTREE", *TREE, script=SCRIPT, plant="ignore_siblings")
    assert outputs(tree) == outputs(chain)
    assert steps(tree) < steps(chain) == steps(play(version, "DFLASH", script=SCRIPT))
