"""A node's logits are those of the plain forward of its prefix and path, whatever else is in the tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from engine_server import EngineServer
from scripts import PROMPTS, tree_flags

from sglang_releases import SUPPORTED

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

TOLERANCE = 2e-4  # float32, logits of order 10; the largest difference seen is 5e-5
FAR = 50 * TOLERANCE  # a causal mask changes the logits of every node that it shows another branch by more

BUDGETS = (5, 12, 33)
FIRST_AND_LAST = SUPPORTED[0], SUPPORTED[-1]
CASES = [
    (version, budget) for version in SUPPORTED for budget in (BUDGETS if version in FIRST_AND_LAST else BUDGETS[1:2])
]
REQUESTS = [{"name": f"r{index}", "ids": PROMPTS[index], "max_new_tokens": 7} for index in (0, 2)]

Step = dict[str, Any]


def verified(engine: EngineServer, budget: int, plant: str = "") -> list[Step]:
    environment = {"SGLANG_DDTREE_SELF_CHECK": "0"}
    value = engine.call(
        "logits.compare",
        environment,
        requests=REQUESTS,
        flags=list(tree_flags(budget, 4)),
        width=budget + 1,
        plant=plant,
    )
    assert isinstance(value, list)
    return value


@pytest.mark.parametrize(("version", "budget"), CASES)
def test_node_logits_are_those_of_a_plain_forward(
    version: str, budget: int, engines: Callable[..., EngineServer]
) -> None:
    steps = verified(engines(version), budget)
    assert {step["shape"] for step in steps} >= {"random", "star", "two branches", "chain", "root alone"}
    assert len({step["prefix"] for step in steps}) > len(steps) // 2  # unequal in a batch
    assert {bool(step["padding"]) for step in steps} == {False, True}
    for step in steps:
        assert max(step["from_plain"]) < TOLERANCE, step
        assert step["by_padding"] == 0.0, step  # not even rounding: what is masked is multiplied by zero
        assert not any(step["by_node_1_elsewhere"]), step
        assert all(change > FAR for change in step["by_node_1"]), step


def test_a_causal_run_of_the_same_rows_differs_by_far(engines: Callable[..., EngineServer]) -> None:
    """What a backend that ignores the mask would give."""
    steps = verified(engines(SUPPORTED[-1]), 12, plant="verify_as_a_chain")
    rows = [pair for step in steps for pair in zip(step["others_before"], step["from_plain"], strict=True)]
    wrong = [difference for others, difference in rows if others]
    assert len(wrong) > len(rows) // 2
    assert min(wrong) > FAR
    assert max(difference for others, difference in rows if not others) < TOLERANCE
