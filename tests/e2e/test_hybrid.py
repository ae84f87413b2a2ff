"""Targets with a recurrent state: refused by default, wrong but sound with the switch, untouched under DFLASH."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from engine_server import EngineServer
from scripts import requests, tree_flags

from sglang_releases import BEFORE_OVERLAP, SUPPORTED

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

# Where the kernels for recurrent states run on a CPU.
BOTH_ENDS = pytest.mark.parametrize("version", [BEFORE_OVERLAP[0], BEFORE_OVERLAP[-1]])
SWITCH = "--speculative-ddtree-allow-hybrid-unsafe"
FLAGS = [*tree_flags(7, 4), SWITCH]
REQUESTS = [each for each in requests(tokens=8) if each["name"] in ("r0", "r3")]
# Their default, bfloat16, is not computed right where the kernels run.
FLOAT32_STATES = {"SGLANG_MAMBA_CONV_DTYPE": "float32", "SGLANG_MAMBA_SSM_DTYPE": "float32"}

Engines = Callable[..., EngineServer]
Play = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def play(engines: Engines) -> Play:
    """``play(version, algorithm, patched=True)``: what ``inside/hybrid.play`` gives; equal calls run once."""
    runs: dict[tuple[str, str, bool], dict[str, Any]] = {}

    def run(version: str, algorithm: str, patched: bool = True) -> dict[str, Any]:
        key = version, algorithm, patched
        if key not in runs:
            flags = FLAGS if algorithm == "DDTREE" else []
            runs[key] = engines(version, patched).call(
                "hybrid.play", FLOAT32_STATES, algorithm=algorithm, requests=REQUESTS, flags=flags
            )
        return runs[key]

    return run


@pytest.mark.shows("hybrids", refused=True)
@pytest.mark.parametrize("version", SUPPORTED)
def test_a_hybrid_target_is_refused(version: str, engines: Engines) -> None:
    _refused(engines(version), hidden=False, place="arguments")


@BOTH_ENDS
def test_a_hybrid_target_is_refused_by_the_worker(version: str, engines: Engines) -> None:
    """Where a configuration did not tell the arguments what the target is."""
    _refused(engines(version), hidden=True, place="engine")


def _refused(engine: EngineServer, hidden: bool, place: str) -> None:
    found = engine.call("hybrid.refused", FLOAT32_STATES, hidden=hidden)
    assert found["place"] == place
    for words in ("hybrid targets", "a branch of the tree sees the tokens of its siblings", "DFLASH", SWITCH):
        assert words in found["message"], found


@BOTH_ENDS
def test_with_the_switch_it_runs_and_says_what_is_wrong(version: str, play: Play) -> None:
    run = play(version, "DDTREE")
    assert run["finishes"] == ["length"] * len(REQUESTS)
    assert run["all_free"] and run["double_frees"] == []
    warnings = [line for line in run["logs"] if line.startswith("WARNING DDTREE")]
    assert any(SWITCH in line and "leaks between sibling branches" in line for line in warnings)
    assert any("self-check is left out" in line for line in warnings)
    assert not any("self-check passed" in line for line in run["logs"])


@BOTH_ENDS
def test_verify_inputs_carry_what_recurrent_kernels_read(version: str, play: Play) -> None:
    """The links of every tree, siblings ascending, and as many nodes as the pool has states for one request.

    A kernel that is given another number of nodes writes the states of one request into those of the next.
    """
    run = play(version, "DDTREE")
    assert run["verify_inputs"] == max(map(len, run["accept_lengths"].values()))
    assert run["wrong"] == []


@BOTH_ENDS
def test_dflash_is_as_before_the_patch(version: str, play: Play) -> None:
    before, after = play(version, "DFLASH", patched=False), play(version, "DFLASH")
    assert after["outputs"] == before["outputs"]
    assert after["accept_lengths"] == before["accept_lengths"]
    assert after["all_free"]


def test_these_kernels_compute_what_they_should(play: Play) -> None:
    """With recurrent states too, a chain emits what the target emits: the harness itself is right.

    Not asked of 0.5.13 and 0.5.13.post1, whose eager verify forward clears these states first.
    """
    plain, chain = play(BEFORE_OVERLAP[0], "NONE"), play(BEFORE_OVERLAP[0], "DFLASH")
    assert chain["outputs"] == plain["outputs"]
    assert max(map(max, chain["accept_lengths"].values())) > 1
