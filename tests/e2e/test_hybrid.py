"""Hybrid targets: a tree is exact for a gated delta net and for Mamba2, down to the states that are kept.

What is wrong on purpose is stopped at the start, by name, and is seen in the measurements where nobody asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from engine_server import EngineServer
from scripts import Script, accept_lengths, assert_sound, outputs, requests, tree_flags

from sglang_releases import BEFORE_OVERLAP, OVERLAPPING, WITH_DELTA_NETS, WITH_MAMBA2

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

DELTA_NET, MAMBA2 = "qwen3_next", "nemotron_h"
EXACT = pytest.mark.parametrize(
    ("version", "kind"),
    [
        *(pytest.param(version, DELTA_NET, marks=pytest.mark.shows("delta-net")) for version in WITH_DELTA_NETS),
        *(pytest.param(version, MAMBA2, marks=pytest.mark.shows("mamba2")) for version in WITH_MAMBA2),
    ],
)
BOTH_ENDS = pytest.mark.parametrize("version", [BEFORE_OVERLAP[-1], OVERLAPPING[-1]])
FLOAT32_STATES = {"SGLANG_MAMBA_CONV_DTYPE": "float32", "SGLANG_MAMBA_SSM_DTYPE": "float32"}
UNCHECKED = {**FLOAT32_STATES, "SGLANG_DDTREE_SELF_CHECK": "0"}
THREE = [each for each in requests(tokens=7) if each["name"] != "r3"]
LONG = [{**each, "max_new_tokens": 48} for each in THREE[1:]]  # of one length below a chunk of Mamba2, and one above
ALONE = {"name": "s0", "ids": [200, 17, 33, 40], "max_new_tokens": 7}
NO_TREES: Script = [{"requests": THREE}, {"requests": [ALONE]}]
TREES: Script = [
    {"requests": THREE, "shape": [12, 4]},
    {"requests": [ALONE], "shape": [12, 4]},
    {"requests": [{**each, "name": f"t{index}"} for index, each in enumerate(THREE)], "shape": [4, 4]},
    {"requests": [{**ALONE, "name": "u0"}], "shape": [4, 4]},
]
WIDTH = 8
TOLERANCE = 2e-4  # float32, of logits some 20 wide and states some 10 wide
SEEN = 0.1

Engines = Callable[..., EngineServer]
Play = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def play(engines: Engines) -> Play:
    """``play(version, kind, algorithm, patched=True)``: what ``inside/hybrid.play`` gives; equal calls run once."""
    runs: dict[tuple[str, str, str, bool], dict[str, Any]] = {}

    def run(version: str, kind: str, algorithm: str, patched: bool = True) -> dict[str, Any]:
        key = version, kind, algorithm, patched
        if key not in runs:
            fields = {"script": NO_TREES, "flags": []}
            if algorithm == "DDTREE":
                fields = {"script": TREES, "flags": list(tree_flags(12, 4))}
            engine = engines(version, patched)
            runs[key] = engine.call("hybrid.play", UNCHECKED, algorithm=algorithm, kind=kind, **fields)
        return runs[key]

    return run


def measured(engine: EngineServer, kind: str, **fields: Any) -> dict[str, Any]:
    flags = list(tree_flags(WIDTH - 1, 4))
    value = engine.call(
        "hybrid_measure.measure", UNCHECKED, requests=LONG, flags=flags, width=WIDTH, kind=kind, **fields
    )
    assert isinstance(value, dict)
    return value


def started(engine: EngineServer, **fields: Any) -> dict[str, Any]:
    environment = {**FLOAT32_STATES, **fields.pop("environment", {})}
    flags = [*tree_flags(WIDTH - 1, 4), *fields.pop("flags", ())]
    value = engine.call("hybrid.started", environment, flags=flags, block_size=4, **fields)
    assert isinstance(value, dict)
    return value


def worst(found: dict[str, Any], what: str) -> float:
    return float(max(row[what] if what != "from_plain" else max(row[what]) for row in found["rows"]))


@EXACT
def test_greedy_tokens_are_those_of_the_target_and_of_dflash(version: str, kind: str, play: Play) -> None:
    """Batches of three and of one, budgets of 12 and 4; a chain's states and a tree's are kept after every step."""
    plain, chain, tree = (play(version, kind, algorithm) for algorithm in ("NONE", "DFLASH", "DDTREE"))
    expected = outputs(plain)
    assert outputs(chain) == expected
    again = {f"t{index}": expected[each["name"]] for index, each in enumerate(THREE)}
    assert outputs(tree) == {**expected, **again, "u0": expected["s0"]}
    for run in (plain, chain, tree):
        assert_sound(run)
        assert run["all_free"]
    lengths = [length for each in accept_lengths(tree).values() for length in each]
    assert 1 in lengths and max(lengths) > 1  # the root alone, and more
    assert not [line for line in tree["logs"] if "hybrid" in line and line.startswith("WARNING")]


@EXACT
def test_logits_of_nodes_and_states_are_those_of_the_paths(version: str, kind: str, engines: Engines) -> None:
    """Six steps of random trees, accepted up to nodes of another depth than their index."""
    found = measured(engines(version), kind)
    assert len(found["rows"]) == 6 * len(LONG)
    assert found["dense"]
    assert sum(row["kept"] != row["depth"] for row in found["rows"]) >= 6
    assert any(row["kept"] == 0 for row in found["rows"])
    for what in ("from_plain", "conv", "recurrence"):
        assert worst(found, what) < TOLERANCE, (what, found["rows"])
    for what in ("elsewhere", "by_siblings"):
        assert worst(found, what) < 1e-5, (what, found["rows"])


@pytest.mark.parametrize("kind", [DELTA_NET, MAMBA2])
def test_the_layout_of_a_gpu_is_dense_for_trees(kind: str, engines: Engines) -> None:
    """There the windows of a chain overlap in the pool, from 0.5.14 on."""
    engine = engines(OVERLAPPING[-1])
    found = measured(engine, kind, layout="overlapping")
    assert found["dense"]
    assert max(worst(found, what) for what in ("from_plain", "conv", "recurrence")) < TOLERANCE
    spoilt = measured(engine, kind, layout="overlapping", plant=["let_windows_overlap", "unchecked"])
    assert not spoilt["dense"]
    assert worst(spoilt, "conv") > SEEN


@pytest.mark.parametrize(
    ("version", "kind"), [(BEFORE_OVERLAP[-1], DELTA_NET), (OVERLAPPING[-1], DELTA_NET), (OVERLAPPING[-1], MAMBA2)]
)
@pytest.mark.parametrize("fault", ["close_the_gate", "link_backwards", "keep_by_length"])
def test_what_is_wrong_is_seen(version: str, kind: str, fault: str, engines: Engines) -> None:
    found = measured(engines(version), kind, plant=[fault, "unchecked"], steps=3)
    wrong = {what for what in ("from_plain", "conv", "recurrence") if worst(found, what) > SEEN}
    assert wrong >= {"from_plain", "recurrence"}, found["rows"]


@BOTH_ENDS
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("close_the_gate", "gate: GDNAttnBackend was built for a chain"),
        ("one_state_short", "step count: the pool keeps 7 states a request for 8 nodes"),
        ("rehearse_without_links", "links: an input of a rehearsed forward has no retrieve_next_token"),
        ("leave_links_out", "no links to verify with"),
        ("leave_little_memory", "--speculative-ddtree-budget of at most"),
    ],
)
def test_a_start_is_refused_by_name(version: str, fault: str, said: str, engines: Engines) -> None:
    found = started(engines(version), plant=[fault])
    assert said in found["refused"], found


@pytest.mark.parametrize("version", OVERLAPPING[-1:])
def test_overlapping_windows_are_refused_by_name(version: str, engines: Engines) -> None:
    found = started(engines(version), plant=["let_windows_overlap"], layout="overlapping")
    assert "window layout: the convolution windows of neighbouring nodes overlap" in found["refused"]


@BOTH_ENDS
def test_the_self_check_covers_recurrent_layers(version: str, engines: Engines) -> None:
    right = started(engines(version))
    assert any("self-check passed" in line and "state drift" in line for line in right["logs"])
    assert any("recurrent layers (gated delta net) keep 8 states a request" in line for line in right["logs"])
    backwards = started(engines(version), plant=["link_backwards", "unchecked"])["refused"]
    assert "does not keep the state of the accepted node" in backwards
    closed = started(engines(version), plant=["close_the_gate", "unchecked"])["refused"]
    assert closed.startswith("SelfCheckError")


@BOTH_ENDS
def test_half_precision_states_are_allowed(version: str, engines: Engines) -> None:
    found = started(engines(version), environment={"SGLANG_MAMBA_SSM_DTYPE": "float16"})
    assert found["refused"] == ""
    assert any("self-check passed" in line for line in found["logs"])


def test_a_radix_cache_that_the_release_refuses_is_refused_in_its_own_words(engines: Engines) -> None:
    refused = started(engines("0.5.13.post1"), cache=True)["refused"]
    assert "radix cache" in refused and "DDTREE" not in refused


@BOTH_ENDS
def test_dflash_is_as_before_the_patch(version: str, play: Play) -> None:
    """But for 0.5.13 and 0.5.13.post1, which clear the states that an eager verify forward begins with: mended."""
    before, after = (play(version, DELTA_NET, "DFLASH", patched) for patched in (False, True))
    if version in ("0.5.13", "0.5.13.post1"):
        assert outputs(before) != outputs(after) == outputs(play(version, DELTA_NET, "NONE"))
    else:
        assert outputs(before) == outputs(after)
        assert accept_lengths(before) == accept_lengths(after)
