"""What happens to requests in a server, with trees: chunked prefill, stops, limits, aborts, retractions, many requests.

Each is compared with what the target emits without speculation: all together on every release, one by one in the
oldest and in the newest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from scripts import PROMPTS, Script, accept_lengths, assert_sound, outputs, requests, tree_flags, unequal_and_shared

from sglang_releases import BEFORE_OVERLAP, ENDS, OVERLAPPING, SUPPORTED

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

BOTH_ENDS = pytest.mark.parametrize("version", [SUPPORTED[0], SUPPORTED[-1]])
TREE = tree_flags(16, 4)
RETRACTING = {"sglang.srt.managers.scheduler": {"TEST_RETRACT": True, "TEST_RETRACT_INTERVAL": 5}}

Play = Callable[..., dict[str, Any]]


@pytest.mark.parametrize("version", SUPPORTED)
def test_all_at_once(version: str, play: Play) -> None:
    """Prompts in chunks, retractions, an abort, limits that end inside a path: on every release."""
    limits = [16, 16, 9, 12]
    asked = [{**each, "max_new_tokens": limit} for each, limit in zip(requests(), limits, strict=True)]
    script: Script = [{"requests": asked, "abort": [[9, "r1"]]}]
    plain = outputs(play(version, "NONE", script=unequal_and_shared()))
    tree = play(version, "DDTREE", *TREE, "--chunked-prefill-size", "8", script=script, prepare=RETRACTING)
    assert_sound(tree)
    answers = tree["rounds"][0]
    assert answers["r1"]["finish"] == "abort"
    assert any(answer["retractions"] for answer in answers.values())
    for name, limit in zip(answers, limits, strict=True):
        output = answers[name]["output"]
        assert output == plain[name][: len(output)]
        assert len(output) == limit or name == "r1"


@BOTH_ENDS
def test_chunked_prefill(version: str, play: Play) -> None:
    script = [
        {"requests": [{"name": f"c{n}", "ids": list(range(10 + n, 40 + 3 * n)), "max_new_tokens": 8} for n in (0, 1)]}
    ]
    plain = play(version, "NONE", script=script)
    tree = play(version, "DDTREE", *TREE, "--chunked-prefill-size", "8", script=script)
    assert_sound(tree)
    assert outputs(tree) == outputs(plain)
    assert tree["batches"] > max(map(len, accept_lengths(tree).values())) + 4  # chunks of two prompts


@BOTH_ENDS
def test_token_limits_inside_an_accepted_path(version: str, play: Play) -> None:
    free = play(version, "DDTREE", *TREE, script=[{"requests": requests()}])
    limits = {name: _ends_inside(lengths) for name, lengths in accept_lengths(free).items()}
    assert any(limits.values())
    script: Script = [{"requests": [{**each, "max_new_tokens": limits[each["name"]] or 5} for each in requests()]}]
    tree = play(version, "DDTREE", *TREE, script=script)
    assert_sound(tree)
    for name, output in outputs(tree).items():
        assert output == outputs(free)[name][: limits[name] or 5]
        assert tree["rounds"][0][name]["finish"] == "length"


@BOTH_ENDS
@pytest.mark.parametrize("kind", ["stop_token_ids", "eos"])
def test_stop_tokens_inside_an_accepted_path(version: str, kind: str, play: Play) -> None:
    free = play(version, "DDTREE", *TREE, script=[{"requests": requests()}])
    places = {name: _stops_inside(outputs(free)[name], lengths) for name, lengths in accept_lengths(free).items()}
    name, (place, token) = next((name, found) for name, found in places.items() if found)
    if kind == "eos":
        sampling, models = {"ignore_eos": False}, {"eos": token}
    else:
        sampling, models = {"stop_token_ids": [token], "ignore_eos": False}, {}
    tree = play(version, "DDTREE", *TREE, script=[{"requests": requests(sampling=sampling)}], models=models)
    plain = play(version, "NONE", script=[{"requests": requests(sampling=sampling)}], models=models)
    assert_sound(tree)
    assert outputs(tree) == outputs(plain)
    answer = tree["rounds"][0][name]
    assert answer["finish"] == "stop"
    assert answer["output"] == outputs(free)[name][: place + 1]
    finishes = {name: answer["finish"] for name, answer in plain["rounds"][0].items()}
    assert finishes == {name: answer["finish"] for name, answer in tree["rounds"][0].items()}


@BOTH_ENDS
def test_an_abort_leaves_the_others_alone(version: str, play: Play) -> None:
    script: Script = [{"requests": requests(), "abort": [[4, "r1"]]}, {"requests": requests("again", tokens=6)}]
    plain = outputs(play(version, "NONE", script=[{"requests": requests()}]))
    tree = play(version, "DDTREE", *TREE, script=script)
    assert_sound(tree)
    aborted = tree["rounds"][0]["r1"]
    assert aborted["finish"] == "abort"
    assert aborted["output"] == plain["r1"][: len(aborted["output"])] and 1 < len(aborted["output"]) < 16
    for index in range(len(PROMPTS)):
        if index != 1:
            assert outputs(tree)[f"r{index}"] == plain[f"r{index}"]
        assert outputs(tree)[f"again{index}"] == plain[f"r{index}"][:6]


@BOTH_ENDS
def test_a_retraction_changes_no_token(version: str, play: Play) -> None:
    plain = play(version, "NONE", script=[{"requests": requests()}])
    tree = play(version, "DDTREE", *TREE, script=[{"requests": requests()}], prepare=RETRACTING)
    assert_sound(tree)
    assert outputs(tree) == outputs(plain)
    assert any(answer["retractions"] for answer in tree["rounds"][0].values())


@BOTH_ENDS
def test_a_pool_too_small_for_all_retracts(version: str, play: Play) -> None:
    """Room for the trees of some of the requests: those that have to wait come later, with the same tokens."""
    plain = play(version, "NONE", script=[{"requests": requests()}])
    tree = play(version, "DDTREE", *TREE, "--max-total-tokens", "112", script=[{"requests": requests()}])
    assert_sound(tree)
    assert outputs(tree) == outputs(plain)
    assert any(answer["retractions"] for answer in tree["rounds"][0].values())


@pytest.mark.parametrize("version", ENDS)
def test_the_context_ends_inside_a_tree(version: str, play: Play) -> None:
    """At the last positions a tree reaches beyond the context: what is emitted is as without speculation."""
    script: Script = [{"requests": [{**each, "max_new_tokens": 200} for each in requests()]}]
    flags = ("--context-length", "30")
    plain = play(version, "NONE", *flags, script=script)
    tree = play(version, "DDTREE", *flags, *TREE, script=script)
    assert_sound(tree)
    assert outputs(tree) == outputs(plain)
    assert {answer["finish"] for answer in tree["rounds"][0].values()} == {"length"}


@pytest.mark.shows("page-size")
@pytest.mark.parametrize("version", OVERLAPPING)
def test_pages_of_several_slots(version: str, play: Play) -> None:
    """The window of a tree begins and ends inside of pages."""
    plain = outputs(play(version, "NONE", script=unequal_and_shared()))
    script: Script = [
        {**round_, "requests": [{**each, "max_new_tokens": 8} for each in round_["requests"]]}
        for round_ in unequal_and_shared()
    ]
    tree = play(version, "DDTREE", *TREE, "--page-size", "4", script=script)
    assert_sound(tree)
    assert outputs(tree) == {name: output[:8] for name, output in plain.items()}
    assert tree["rounds"][1]["s0"]["cached_tokens"] == 20
    assert any(length > 1 for lengths in accept_lengths(tree).values() for length in lengths)


@pytest.mark.parametrize("version", [BEFORE_OVERLAP[-1], OVERLAPPING[-1]])
def test_no_slot_is_lost_over_hundreds_of_requests(version: str, play: Play) -> None:
    """Prompts that share prefixes, in a pool so small that the radix cache is evicted all the time."""
    script: Script = [
        {"requests": [_short(f"{turn}-{index}", turn, index) for index in range(4)]} for turn in range(40)
    ]
    tree = play(version, "DDTREE", *tree_flags(5, 4), "--max-total-tokens", "160", script=script)
    assert_sound(tree)
    assert len(outputs(tree)) == 160
    assert all(len(output) in (2, 3) for output in outputs(tree).values())
    assert sum(answer["cached_tokens"] > 0 for round_ in tree["rounds"] for answer in round_.values()) > 20


def _short(name: str, turn: int, index: int) -> dict[str, Any]:
    ids = [turn % 7 + 1] * (1 + turn % 5) + [10 + index, 20 + turn % 3]
    return {"name": name, "ids": ids, "max_new_tokens": 2 + index % 2}


def _ends_inside(lengths: list[int]) -> int:
    """A number of tokens that ends in the middle of a step; 0 where no step accepted enough."""
    place = 1
    for length in lengths:
        if length > 2:
            return place + 2
        place += length
    return 0


def _stops_inside(output: list[int], lengths: list[int]) -> tuple[int, int] | None:
    """A place in the output in the middle of a step, whose token has not occurred before it."""
    ends, place = set(), 0
    for length in lengths:
        place += length
        ends.add(place)
    for place, token in enumerate(output):
        if place and place not in ends and token not in output[:place]:
            return place, token
    return None
