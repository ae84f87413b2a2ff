"""The numbers that people ask for: logged at the release's own interval, and equal to what is seen of every step."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from engine_server import EngineServer
from scripts import requests, tree_flags

from sglang_releases import SUPPORTED

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

INTERVAL = 2
LINE = re.compile(
    r"INFO DDTREE: (\d+) verify steps of ([\d.]+) requests\. Means: tree size ([\d.]+) nodes, tree depth ([\d.]+), "
    r"accepted draft tokens ([\d.]+), sibling-hit share ([\d.]+)"
)
ROUNDED = [0.0, 0.051, 0.051, 0.0051, 0.0051, 0.0051]  # how the line prints its numbers

Seen = dict[str, Any]


@pytest.fixture(scope="module")
def observe(engines: Callable[..., EngineServer]) -> Callable[[str, str], Seen]:
    """``observe(version, algorithm)``: a batch of four, logged every second step; run once."""
    results: dict[tuple[str, str], Seen] = {}

    def get(version: str, algorithm: str) -> Seen:
        if (version, algorithm) not in results:
            flags = ["--decode-log-interval", str(INTERVAL), *(tree_flags(9, 4) if algorithm == "DDTREE" else ())]
            results[version, algorithm] = engines(version).call(
                "tree_statistics.observe",
                {"SGLANG_DDTREE_SELF_CHECK": "0"},
                algorithm=algorithm,
                requests=requests(tokens=14),
                flags=flags,
            )
        return results[version, algorithm]

    return get


@pytest.mark.parametrize("version", SUPPORTED)
def test_every_interval_is_logged_with_the_means_of_its_steps(
    version: str, observe: Callable[[str, str], Seen]
) -> None:
    seen = observe(version, "DDTREE")
    lines = [tuple(map(float, found.groups())) for found in map(LINE.fullmatch, seen["logs"]) if found]
    steps = seen["steps"]
    assert len(lines) == len(steps) // INTERVAL > 2
    for number, line in enumerate(lines):
        part = slice(number * INTERVAL, (number + 1) * INTERVAL)
        expected = _means(steps[part])
        if any(seen["ended"][part]):  # the tokens of a path that its request had no use for are counted too
            assert line[:4] == pytest.approx(expected[:4], abs=0.051)
            assert line[4] > expected[4] - ROUNDED[4] and line[5] > expected[5] - ROUNDED[5]
        else:
            for value, mean, rounded in zip(line, expected, ROUNDED, strict=True):
                assert abs(value - mean) <= rounded, (line, expected)
    assert any(entry["nodes"] == 9 for step in steps for entry in step)
    assert {0.0, 1.0} != {line[5] for line in lines}


@pytest.mark.parametrize("version", SUPPORTED)
def test_sglangs_own_acceptance_length_stays_right(version: str, observe: Callable[[str, str], Seen]) -> None:
    """Tokens a verify step, in the decode line that follows DDTREE's, and per request in what is sent out."""
    seen = observe(version, "DDTREE")
    logged = [float(text) for line in seen["logs"] for text in re.findall(r"accept len: ([\d.]+)", line)]
    steps = seen["steps"]
    assert len(logged) == len(steps) // INTERVAL
    for number, value in enumerate(logged):
        entries = [entry for step in steps[number * INTERVAL : (number + 1) * INTERVAL] for entry in step]
        assert abs(value - sum(entry["emitted"] for entry in entries) / len(entries)) <= 0.0051
    for answer in seen["answers"]:
        assert answer["tokens"] > answer["verify_count"]
    verified = sum(answer["verify_count"] for answer in seen["answers"])
    assert verified == sum(map(len, steps))
    assert sum(answer["tokens"] - 1 for answer in seen["answers"]) == sum(
        entry["emitted"] for step in steps for entry in step
    )


@pytest.mark.parametrize("version", [SUPPORTED[0], SUPPORTED[-1]])
def test_ddtrees_line_comes_beside_the_decode_line(version: str, observe: Callable[[str, str], Seen]) -> None:
    lines = [line for line in observe(version, "DDTREE")["logs"] if LINE.fullmatch(line) or "accept len: " in line]
    assert len(lines) > 4
    assert all(map(LINE.fullmatch, lines[::2]))
    assert all("accept len: " in line for line in lines[1::2])


@pytest.mark.parametrize("version", [SUPPORTED[0], SUPPORTED[-1]])
def test_dflash_logs_nothing_of_trees(version: str, observe: Callable[[str, str], Seen]) -> None:
    seen = observe(version, "DFLASH")
    assert any("accept len: " in line for line in seen["logs"])
    assert not [line for line in seen["logs"] if "DDTREE" in line]


def _means(steps: list[list[Seen]]) -> list[float]:
    """What the line says of these steps."""
    entries = [entry for step in steps for entry in step]
    sums = [
        sum(entry["nodes"] for entry in entries),
        sum(entry["depth"] for entry in entries),
        sum(entry["emitted"] - 1 for entry in entries),
        sum(any(rank > 0 for rank in entry["ranks"][: entry["emitted"] - 1]) for entry in entries),
    ]
    return [len(steps), len(entries) / len(steps), *(value / len(entries) for value in sums)]
