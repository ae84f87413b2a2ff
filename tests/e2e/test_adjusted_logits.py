"""A bias and a custom processor change the target's choice at every node as they do without speculation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from scripts import requests, tree_flags

from sglang_releases import SUPPORTED

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

BIAS = {"logit_bias": {"1": 8.0, "7": 9.0}}
EXCHANGE = {"fields": {"custom_logit_processor": "exchange"}}
SAMPLED = {"temperature": 0.8, "sampling_seed": 11}

Answers = list[dict[str, Any]]


@pytest.mark.parametrize("version", [SUPPORTED[0], SUPPORTED[-1]])
@pytest.mark.parametrize("sampled", [False, True], ids=["greedy", "sampled-and-greedy"])
def test_the_tokens_are_those_without_speculation(version: str, sampled: bool, engines: Callable[..., Any]) -> None:
    """A biased request, one with a processor, one with both (in SGLang's order) and one with neither, in one batch."""
    asked = requests(tokens=12)
    asked[0] |= {"sampling": BIAS}
    asked[1] |= EXCHANGE
    asked[2] |= {"sampling": BIAS} | EXCHANGE
    if sampled:
        for request in asked[:3]:
            request["sampling"] = {**request.get("sampling", {}), **SAMPLED}
    plain = _seeded(engines(version), "NONE", asked)
    tree = _seeded(engines(version), "DDTREE", asked, tree_flags(12, 8))
    assert _outputs(tree) == _outputs(plain)
    assert any(length > 1 for answer in tree for length in answer["accept_lengths"])
    bare = [{**request, "fields": {}, "sampling": SAMPLED if sampled else {}} for request in asked[:3]] + asked[3:]
    changed = [
        one != other
        for one, other in zip(_outputs(plain), _outputs(_seeded(engines(version), "NONE", bare)), strict=True)
    ]
    assert changed == [True, True, True, False]


def _seeded(engine: Any, algorithm: str, asked: list[dict[str, Any]], flags: tuple[str, ...] = ()) -> Answers:
    environment = {"SGLANG_DDTREE_SELF_CHECK": "0"}
    value = engine.call("adjusted.seeded", environment, algorithm=algorithm, requests=asked, flags=list(flags))
    assert isinstance(value, list)
    return value


def _outputs(answers: Answers) -> list[list[int]]:
    return [answer["output"] for answer in answers]
