"""What a run that died left half done: the next command that writes puts it back first, and says so; others only look.

At which points a run can die, and that the tree is whole afterwards, is in test_killed.py.
"""

from __future__ import annotations

import os

import pytest

from ddtree_patcher.errors import Conflict
from ddtree_patcher.model import ExitCode, Tier
from ddtree_patcher.operations.verifying import verify

from .scenarios import die_at, interrupt, put
from .world import World

FLOOR = 20  # so often, at least, is a run that dies half way told of


def test_the_command_itself_recovers_first_and_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # a process dies here, and the power stays on
    before, told = world.footprint(), 0
    world.apply()
    patched = world.contents()
    for number in range(1, 1000):
        put(world, before)
        died = die_at(number, world.apply)
        interrupted = world.status() == "interrupted"
        report = world.apply()
        assert report.exit_code is ExitCode.OK, number
        assert ("interrupted" in {item.code for item in report.diagnostics}) is interrupted
        told += interrupted
        assert world.status() == "applied"
        assert world.contents() == patched, number  # RECORD too, which was read before the recovery
        world.revert()
        assert world.footprint() == before, number
        if not died:
            break
    assert told > FLOOR


def test_a_file_that_somebody_wrote_since_is_not_overwritten(world: World) -> None:
    world.apply()
    interrupt(world, World.revert)
    (world.site / "tiny/alpha.py").write_bytes(b"theirs = 1\n")
    before = world.footprint()
    with pytest.raises(Conflict, match=r"tiny/alpha\.py changed after an interrupted run") as caught:
        world.apply()
    assert caught.value.path == "tiny/alpha.py" and caught.value.remedy
    assert world.footprint() == before


def test_nothing_to_recover(world: World) -> None:
    before = world.footprint()
    assert world.recover() is None
    assert world.footprint() == before


def test_status_and_verify_only_look(world: World) -> None:
    interrupt(world, World.apply)
    before = world.footprint()
    assert world.status() == "interrupted"
    report = verify(world.session(), Tier.STATIC, None)
    assert (report.exit_code, report.outcome) == (ExitCode.VERIFICATION_FAILED, "interrupted")
    assert world.footprint() == before
