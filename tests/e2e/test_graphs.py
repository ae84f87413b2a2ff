"""Decode steps through the release's own graph runner: what it captures, and that replays emit what forwards emit.

The graph is one for the CPU, which like a real one replays what was launched while it was captured and runs no Python
(``inside/fake_graph.py``). What only a GPU can show is in ``tests/gpu``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from engine_server import EngineServer, InsideError
from inside.graph_watch import expected_graphs
from scripts import BLOCK, PROMPTS, accept_lengths, outputs, tree_flags

from sglang_releases import BEFORE_OVERLAP, OVERLAPPING

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

# The last release of the first worker and of its graph runner, and those in which the second ones changed.
RELEASES = (BEFORE_OVERLAP[-1], OVERLAPPING[0], "0.5.16", "0.5.19", OVERLAPPING[-1])
ENDS = pytest.mark.parametrize("version", [RELEASES[0], RELEASES[-1]])
NEWEST = pytest.mark.parametrize("version", [RELEASES[-1]])
BUDGET = 7
WIDTH = BUDGET + 1
SIZES = (4, 1)  # of the batches that graphs are captured for, see inside/graphs.py
# Many tokens are nearly as good as the best one, so that attention to a wrong node changes what is emitted.
MODELS = {"hot": 8, "seed": 5}

Play = Callable[..., dict[str, Any]]
Engines = Callable[..., EngineServer]


# Together; as they end one by one, smaller batches follow.
REQUESTS = [{"name": f"r{n}", "ids": list(ids), "max_new_tokens": 9 - 2 * n} for n, ids in enumerate(PROMPTS)]


def flags(algorithm: str) -> tuple[str, ...]:
    return tree_flags(BUDGET, 4) if algorithm == "DDTREE" else ()


def replay(engine: EngineServer, algorithm: str, check: str = "1", **arguments: Any) -> dict[str, Any]:
    """What ``inside/graphs.play`` gives; with the start-up self-check."""
    asked = {"rounds": [REQUESTS], "flags": list(flags(algorithm)), "models": MODELS, **arguments}
    value = engine.call("graphs.play", {"SGLANG_DDTREE_SELF_CHECK": check}, algorithm=algorithm, **asked)
    assert isinstance(value, dict)
    return value


def eager(play: Play, version: str, algorithm: str) -> dict[str, Any]:
    return play(version, algorithm, *flags(algorithm), script=[{"requests": REQUESTS}], models=MODELS)


def assert_replayed(run: dict[str, Any]) -> None:
    """Every step replayed one graph of the drafter and one of the target: the smallest that the batch fits in."""
    for step in run["steps"]:
        size = min(size for size in SIZES if size >= step["requests"])
        assert (step["draft"], step["target"]) == ([size], [size]), step


@pytest.mark.parametrize("version", RELEASES)
def test_replays_of_a_tree_do_what_forwards_do(version: str, engines: Engines, play: Play) -> None:
    run, forwards = replay(engines(version), "DDTREE"), eager(play, version, "DDTREE")
    assert run["captured"] == expected_graphs(SIZES, BLOCK, WIDTH)
    assert run["checked"] == [4, 4, 4, 1]  # by the self-check: two requests three times, one once
    assert_replayed(run)
    sizes = {step["requests"] for step in run["steps"]}
    assert {1, 4} <= sizes and sizes & {2, 3}  # batches of two and of three are padded to four
    assert run["outputs"] == outputs(forwards) == outputs(eager(play, version, "NONE"))
    assert run["accept_lengths"] == accept_lengths(forwards)
    assert max(map(max, run["accept_lengths"].values())) > 1
    assert run["faults"] == []


@ENDS
def test_dflash_is_captured_and_replayed_as_before(version: str, engines: Engines, play: Play) -> None:
    run = replay(engines(version), "DFLASH")
    assert run["captured"] == expected_graphs(SIZES, BLOCK)
    assert_replayed(run)
    assert run["outputs"] == outputs(eager(play, version, "NONE"))


@ENDS
def test_the_self_check_sees_a_graph_without_a_mask(version: str, engines: Engines) -> None:
    with pytest.raises(InsideError, match="lets the branches of a draft tree see each other"):
        replay(engines(version), "DDTREE", plant="no mask")


@NEWEST
def test_without_a_mask_in_the_graph_other_tokens_come_out(version: str, engines: Engines, play: Play) -> None:
    """What the step graph-mask is for: the mask is there at every replay, and the captured kernels do not read it."""
    run = replay(engines(version), "DDTREE", check="0", plant="no mask")
    target = [graph for graph in run["captured"] if graph["role"] == "target"]
    assert {(graph["rows"], graph["mask"], graph["attention_masks"]) for graph in target} == {(WIDTH, "none", False)}
    assert run["outputs"] != outputs(eager(play, version, "NONE"))


@NEWEST
@pytest.mark.parametrize(
    ("plant", "role", "rows"), [("wide drafter", "draft", WIDTH), ("narrow target", "target", BLOCK)]
)
def test_a_graph_of_the_wrong_width_is_never_replayed(
    version: str, plant: str, role: str, rows: int, engines: Engines
) -> None:
    """The newest release compares widths; older ones stop with an error about shapes."""
    run = replay(engines(version), "DDTREE", check="0", plant=plant)
    assert [graph["rows"] for graph in run["captured"] if graph["role"] == role] == [rows, rows]
    assert all(step[role] == [] for step in run["steps"])
    with pytest.raises(AssertionError):
        assert_replayed(run)


@ENDS
def test_a_full_batch_at_the_end_of_its_context(version: str, engines: Engines, play: Play) -> None:
    """Trees that begin near the last token of the context have masks larger than backends size their buffers for."""
    lengths = enumerate((41, 41, 41, 40))
    asked = [{"name": f"e{n}", "ids": list(range(3 + n, 3 + n + size)), "max_new_tokens": 4} for n, size in lengths]
    context = ("--context-length", "48")
    run = replay(engines(version), "DDTREE", "0", rounds=[asked], flags=[*flags("DDTREE"), *context])
    plain = play(version, "NONE", *context, script=[{"requests": asked}], models=MODELS)
    assert run["outputs"] == outputs(plain)
    assert run["steps"][0] == {"requests": 4, "target": [4], "draft": [4]}
