"""The scheduler's overlap changes nothing of what is emitted and accepted, and a tree makes no step wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from engine_server import EngineServer
from scripts import accept_lengths, assert_sound, outputs, requests, tree_flags, unequal_and_shared

from sglang_releases import OVERLAPPING, SUPPORTED, WITH_LOGPROBS

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

WITHOUT = "--disable-overlap-schedule"
TREE = tree_flags(16, 4)
NEVER = ("--decode-log-interval", "100000")  # what is logged is copied to the host, while the device goes on

Engines = Callable[..., EngineServer]
Play = Callable[..., dict[str, Any]]


@pytest.mark.shows("overlap")
@pytest.mark.parametrize("version", OVERLAPPING)
def test_trees_with_overlap_and_without(version: str, play: Play) -> None:
    _compare(play, version, "DDTREE", TREE)


@pytest.mark.parametrize("version", [OVERLAPPING[0], OVERLAPPING[-1]])
def test_dflash_with_overlap_and_without(version: str, play: Play) -> None:
    _compare(play, version, "DFLASH", ())


@pytest.mark.parametrize("version", [OVERLAPPING[0], *WITH_LOGPROBS[:2], OVERLAPPING[-1]])
def test_a_tree_makes_no_step_wait(version: str, engines: Engines) -> None:
    """No read of the device's tensors and no shape that depends on data in any module that the patch adds."""
    found = _guarded(engines(version), "no_sync.watch", tokens=6)
    assert found["offences"] == []
    assert found["seen"] > 500
    assert any(length > 1 for lengths in found["accept_lengths"] for length in lengths)


def test_a_wait_that_is_planted_into_a_step_is_seen(engines: Engines) -> None:
    found = _guarded(engines(OVERLAPPING[-1]), "no_sync.planted_in_a_step", tokens=3)
    assert found["offences"]
    assert all(offence.startswith("ddtree_worker.py:") and " walk: " in offence for offence in found["offences"])


def test_every_kind_of_wait_is_seen(engines: Engines) -> None:
    found = engines(SUPPORTED[-1]).call("no_sync.planted")
    assert len(found["planted"]) > 10
    assert [name for name, offences in found["planted"].items() if not offences] == []
    assert {name: offences for name, offences in found["harmless"].items() if offences} == {}


def _compare(play: Play, version: str, algorithm: str, flags: tuple[str, ...]) -> None:
    on = play(version, algorithm, *flags, script=unequal_and_shared())
    off = play(version, algorithm, *flags, WITHOUT, script=unequal_and_shared())
    assert (on["overlap"], off["overlap"]) == (True, False)
    for run in (on, off):
        assert_sound(run)
    assert outputs(on) == outputs(off)
    assert accept_lengths(on) == accept_lengths(off)


def _guarded(engine: EngineServer, function: str, tokens: int) -> Any:
    asked = requests(tokens=tokens)
    asked[1] |= {"sampling": {"temperature": 0.8}}
    environment = {"SGLANG_DDTREE_SELF_CHECK": "0"}
    return engine.call(function, environment, requests=asked, flags=[*tree_flags(9, 4), *NEVER])
