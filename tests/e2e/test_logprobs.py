"""Log-probabilities are those of the same tokens without speculation, where DFLASH gives them too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from scripts import assert_sound, outputs, requests, tree_flags

from sglang_releases import WITH_LOGPROBS

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

TOLERANCE = 2e-4  # float32; the tokens' log-probabilities are of order 1


@pytest.mark.shows("logprobs")
@pytest.mark.parametrize("version", WITH_LOGPROBS)
def test_every_token_has_its_log_probability(version: str, play: Callable[..., dict[str, Any]]) -> None:
    """Two requests ask for them and two do not, in one batch."""
    asked = requests(tokens=8)
    for request in asked[::3]:
        request["fields"] = {"return_logprob": True}
    plain = play(version, "NONE", script=[{"requests": asked}])
    tree = play(version, "DDTREE", *tree_flags(16, 4), script=[{"requests": asked}])
    assert_sound(tree)
    assert outputs(tree) == outputs(plain)
    for request in asked:
        name = request["name"]
        expected, found = (run["rounds"][0][name]["logprobs"] for run in (plain, tree))
        assert found == pytest.approx(expected, abs=TOLERANCE)
        assert len(found) == (8 if "fields" in request else 0)
    assert len({round(value, 3) for value in tree["rounds"][0]["r0"]["logprobs"]}) > 4
