"""The server that tests run engines in: every fork is fresh, and whatever happens to one is said."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from engine_server import EngineServer, InsideError

from sglang_releases import SUPPORTED

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

VERSION = SUPPORTED[-1]


@pytest.fixture
def server(engines: Callable[..., EngineServer]) -> EngineServer:
    return engines(VERSION)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("crash", ["status -11", "about to crash"]),
        ("hang", ["no answer within 2 seconds", "about to hang"]),
        ("leave", ["SystemExit", "has to go"]),
        ("answer_nonsense", ["set is not JSON serializable"]),
        ("unknown", ["AttributeError", "unknown"]),
    ],
)
def test_a_fork_that_gives_no_answer_is_explained(function: str, said: list[str], server: EngineServer) -> None:
    with pytest.raises(InsideError) as caught:
        server.call(f"misbehave.{function}", time_limit=2.0 if function == "hang" else 60.0)
    for words in said:
        assert words in str(caught.value)
    assert server.call("misbehave.where")  # the next one is served


def test_every_fork_is_fresh(server: EngineServer, patched_tree: Callable[[str], Path]) -> None:
    first = server.call("misbehave.where", {"SGLANG_DDTREE_SPINE": "1"})
    second = server.call("misbehave.where")
    assert first["pid"] != second["pid"]
    assert (first["variable"], second["variable"]) == ("1", "")
    assert first["threads"] == 1
    assert first["sglang"] == str(patched_tree(VERSION).resolve() / "sglang")
    assert first["folder"] != second["folder"]
    assert not Path(first["folder"]).exists()


def test_flags_are_refused_as_by_the_server(server: EngineServer) -> None:
    with pytest.raises(InsideError, match="positive integer"):
        server.call("scenarios.play", algorithm="DDTREE", script=[], flags=["--speculative-ddtree-budget", "0"])


def test_nothing_outlives_a_server(sglang_python: str, shared_tree: Callable[[str], Path]) -> None:
    server = EngineServer(sglang_python, shared_tree(VERSION))
    pid = server.call("misbehave.where")["pid"]
    with pytest.raises(InsideError):
        server.call("misbehave.sleep_in_a_child", time_limit=1.0)
    group = server._process.pid
    server.close()
    assert not _is_alive(pid)
    assert _living_members(group) == []


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _living_members(group: int) -> list[str]:
    """Processes of a group, but for those that have ended and wait to be asked how."""
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _parent, its_group = stat.read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and state != "Z":
                members.append(stat.parent.name)
    return members
