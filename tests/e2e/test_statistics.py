"""The numbers that people ask for: logged at the release's own interval, and equal to what is seen of every step."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from engine_server import EngineServer
from scripts import requests, tree_flags

from sglang_releases import ENDS, SUPPORTED

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


@pytest.mark.parametrize("version", ENDS)
def test_every_interval_is_logged_with_the_means_of_its_steps(
    version: str, observe: Callable[[str, str], Seen]
) -> None:
    """All that was verified counts, what a request had no use for any more too."""
    seen = observe(version, "DDTREE")
    lines = [tuple(map(float, found.groups())) for found in map(LINE.fullmatch, seen["logs"]) if found]
    intervals = _intervals(seen["steps"])
    assert len(lines) == len(intervals) > 2
    for line, steps in zip(lines, intervals, strict=True):
        for value, mean, rounded in zip(line, _means(steps), ROUNDED, strict=True):
            assert abs(value - mean) <= rounded, (line, _means(steps))
    assert any(entry["nodes"] == 9 for step in seen["steps"] for entry in step)
    assert {0.0, 1.0} != {line[5] for line in lines}


@pytest.mark.parametrize("version", ENDS)
def test_sglangs_own_acceptance_length_stays_right(version: str, observe: Callable[[str, str], Seen]) -> None:
    """Tokens a verify step, in the decode line that follows DDTREE's, and per request in what is sent out.

    Releases differ in whether the line counts what was accepted beyond the end of a request.
    """
    seen = observe(version, "DDTREE")
    logged = [float(text) for line in seen["logs"] for text in re.findall(r"accept len: ([\d.]+)", line)]
    for value, steps in zip(logged, _intervals(seen["steps"]), strict=True):
        entries = [entry for step in steps for entry in step]
        emitted = sum(entry["emitted"] for entry in entries) / len(entries)
        accepted = sum(entry["accepted"] + 1 for entry in entries) / len(entries)
        assert emitted - 0.0051 <= value <= accepted + 0.0051
    for answer in seen["answers"]:
        assert answer["tokens"] > answer["verify_count"]
    emitted = [entry["emitted"] for step in seen["steps"] for entry in step if entry["emitted"]]
    assert sum(answer["verify_count"] for answer in seen["answers"]) == len(emitted)
    assert sum(answer["tokens"] - 1 for answer in seen["answers"]) == sum(emitted)


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


def _intervals(steps: list[list[Seen]]) -> list[list[list[Seen]]]:
    """As many whole ones as there are."""
    return [steps[end - INTERVAL : end] for end in range(INTERVAL, len(steps) + 1, INTERVAL)]


def _means(steps: list[list[Seen]]) -> list[float]:
    """What the line says of these steps."""
    entries = [entry for step in steps for entry in step]
    sums = [sum(entry[name] for entry in entries) for name in ("nodes", "depth", "accepted", "sibling")]
    return [len(steps), len(entries) / len(steps), *(value / len(entries) for value in sums)]
