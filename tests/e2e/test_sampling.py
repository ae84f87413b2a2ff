"""Sampled requests emit what the target alone would emit: the same draws with seeds, the same distribution without."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from scripts import outputs, requests, tree_flags

from sglang_releases import ENDS, SUPPORTED

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

SETTINGS = [
    {"temperature": 0.6},
    {"temperature": 1.0},
    {"temperature": 1.5},
    {"temperature": 1.2, "top_k": 4},
    {"temperature": 1.2, "top_p": 0.8},
    {"temperature": 1.0, "min_p": 0.1},
    {"temperature": 1.3, "top_k": 6, "top_p": 0.9, "min_p": 0.05},
]
DRAWS = 20_000
SIGMAS = 4.5  # of chi-squared: one in 10^5 runs of an exact sampler would be beyond, and the seeds are fixed


def sigmas(observed: list[list[float]], expected: list[list[float]]) -> float:
    """How many standard deviations chi-squared is above its mean; cells expected below 5 count together."""
    cells = [pair for rows in zip(observed, expected, strict=True) for pair in zip(*rows, strict=True)]
    large = [(seen, mean) for seen, mean in cells if mean >= 5]
    rare = [(seen, mean) for seen, mean in cells if mean < 5]
    if (mean := sum(mean for _, mean in rare)) >= 5:
        large.append((sum(seen for seen, _ in rare), mean))
    else:
        assert sum(seen for seen, _ in rare) <= 25, "tokens were emitted that the target almost never emits"
    freedom = len(large) - 1
    chi_squared = sum((seen - mean) ** 2 / mean for seen, mean in large)
    return (chi_squared - freedom) / math.sqrt(2 * freedom)


def firsts(pairs: list[list[float]]) -> list[list[float]]:
    return [[sum(row)] for row in pairs]


@pytest.mark.parametrize("version", SUPPORTED)
def test_the_emitted_distribution_is_the_targets(version: str, engines: Callable[..., Any]) -> None:
    results = engines(version).call("sampling.pairs", settings=SETTINGS, draws=DRAWS)
    for setting, result in zip(SETTINGS, results, strict=True):
        assert sum(map(sum, result["observed"])) == DRAWS
        assert sigmas(firsts(result["observed"]), firsts(result["expected"])) < SIGMAS, setting
        assert sigmas(result["observed"], result["expected"]) < SIGMAS, setting
        # A filter that is not applied would emit what has no probability at all.
        for seen, mean in zip(result["observed"], result["expected"], strict=True):
            assert not any(s for s, m in zip(seen, mean, strict=True) if m == 0.0), setting


def test_a_biased_rule_is_noticed(engines: Callable[..., Any]) -> None:
    """hipfire #483: accepting by min(1, p / q) is wrong where the candidate was not drawn from q."""
    results = engines(SUPPORTED[-1]).call("sampling.pairs", settings=SETTINGS[:3], draws=DRAWS, biased=True)
    for setting, result in zip(SETTINGS[:3], results, strict=True):
        assert sigmas(firsts(result["observed"]), firsts(result["expected"])) > 10, setting


@pytest.mark.parametrize("version", ENDS)
def test_seeded_requests_draw_what_they_draw_without_speculation(version: str, engines: Callable[..., Any]) -> None:
    """One draw a node from the target's distribution, by the release's own sampler and at the node's own position."""
    asked = requests(tokens=12)
    settings = [{"temperature": 1.0}, {"temperature": 0.7, "top_k": 5}, {"temperature": 1.3, "top_p": 0.8}, {}]
    for number, (request, setting) in enumerate(zip(asked, settings, strict=True)):
        request["sampling"] = {**setting, "sampling_seed": 7 + number}
    plain = engines(version).call("sampling.seeded", algorithm="NONE", requests=asked)
    tree = engines(version).call("sampling.seeded", algorithm="DDTREE", requests=asked, flags=list(tree_flags(12, 8)))
    assert [answer["output"] for answer in tree] == [answer["output"] for answer in plain]
    assert sum(map(len, (answer["accept_lengths"] for answer in tree))) < sum(
        len(answer["output"]) for answer in plain
    ), "no draw ever followed the tree"


@pytest.mark.parametrize("version", [SUPPORTED[0], SUPPORTED[-1]])
def test_greedy_and_sampled_requests_in_one_batch(version: str, play: Callable[..., dict[str, Any]]) -> None:
    """PR #29907's first review: a batch that samples made every request sample, or none."""
    asked = requests(tokens=12)
    greedy = outputs(play(version, "NONE", script=[{"requests": asked}]))
    asked[0] = {**asked[0], "sampling": {"temperature": 1.5}}
    asked[2] = {**asked[2], "sampling": {"temperature": 1.5, "top_p": 0.95}}
    mixed = outputs(play(version, "DDTREE", *tree_flags(12, 8), script=[{"requests": asked}]))
    for name in (asked[1]["name"], asked[3]["name"]):
        assert mixed[name] == greedy[name]
    for name in (asked[0]["name"], asked[2]["name"]):
        assert mixed[name] != greedy[name]
