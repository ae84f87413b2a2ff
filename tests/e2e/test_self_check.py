"""The start-up self-check: it passes on the right engine, stops a wrong one with the reason, and leaves no trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from engine_server import EngineServer
from scripts import tree_flags

from sglang_releases import SUPPORTED

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

BOTH_ENDS = pytest.mark.parametrize("version", [SUPPORTED[0], SUPPORTED[-1]])
TREE = tree_flags(8, 4)
POOLS = ["free slots", "request table", "free requests"]
SEES_NO_ANCESTORS = "does not see its ancestors"
BRANCHES_SEE_EACH_OTHER = "lets the branches of a draft tree see each other"
DIFFERS_BESIDE_ANOTHER = "verifies a request differently beside another one of another length"

Engines = Callable[..., EngineServer]


def started(engine: EngineServer, *flags: str, switch: str = "1", **arguments: Any) -> dict[str, Any]:
    environment = {"SGLANG_DDTREE_SELF_CHECK": switch}
    value = engine.call("self_check.start", environment, flags=[*TREE, *flags], **arguments)
    assert isinstance(value, dict)
    return value


def logged(found: dict[str, Any], words: str) -> list[str]:
    return [line for line in found["logs"] if words in line]


@pytest.mark.parametrize("version", SUPPORTED)
def test_the_right_engine_passes_and_its_pools_are_as_before(version: str, engines: Engines) -> None:
    found = started(engines(version))
    assert found["refused"] == ""
    (line,) = logged(found, "self-check")
    assert line.startswith("INFO DDTREE: self-check passed on TritonAttnBackend: 2 requests, 9 nodes")
    assert found["untouched"] == POOLS


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("ignore_the_mask", BRANCHES_SEE_EACH_OTHER),
        ("verify_as_a_chain", BRANCHES_SEE_EACH_OTHER),
        ("show_a_sibling", BRANCHES_SEE_EACH_OTHER),
        ("hide_ancestors", SEES_NO_ANCESTORS),
        ("read_a_rectangle", ""),  # it depends on the lengths how it shows
        ("count_from_the_first_prefix", DIFFERS_BESIDE_ANOTHER),
    ],
)
@BOTH_ENDS
def test_a_planted_fault_stops_the_server(version: str, fault: str, said: str, engines: Engines) -> None:
    found = started(engines(version), plant=fault)
    assert found["refused"].startswith("SelfCheckError: DDTREE self-check failed: ")
    for words in (said, "TritonAttnBackend", "--attention-backend", "SGLANG_DDTREE_SELF_CHECK=0"):
        assert words in found["refused"]
    assert found["untouched"] == POOLS


@BOTH_ENDS
def test_it_can_be_switched_off(version: str, engines: Engines) -> None:
    found = started(engines(version), switch="0", plant="ignore_the_mask")
    assert found["refused"] == ""
    assert logged(found, "self-check") == [
        "WARNING DDTREE: the start-up self-check is switched off by SGLANG_DDTREE_SELF_CHECK."
    ]
    assert found["untouched"] == []


def test_a_tree_of_one_drafted_node_has_no_branches(engines: Engines) -> None:
    found = started(engines(SUPPORTED[-1]), *tree_flags(1, 4), models={"block_size": 2})
    assert found["refused"] == ""
    assert logged(found, "nothing to check")
    assert found["untouched"] == POOLS


def test_a_server_of_one_request_checks_one(engines: Engines) -> None:
    found = started(engines(SUPPORTED[-1]), "--max-running-requests", "1")
    assert found["refused"] == ""
    assert logged(found, "self-check passed on TritonAttnBackend: 1 requests")
    assert found["untouched"] == POOLS


@BOTH_ENDS
def test_a_pool_too_small_for_trees_is_refused(version: str, engines: Engines) -> None:
    found = started(engines(version), *tree_flags(30, 4), "--max-total-tokens", "100")
    assert found["refused"].startswith("SelfCheckError: DDTREE: a verify width of 31 nodes is more than this server")
    assert "100 KV cache slots" in found["refused"]
    assert "--speculative-ddtree-budget" in found["refused"]
    assert found["untouched"] == POOLS
