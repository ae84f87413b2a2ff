"""``kill -9`` and power cuts at any point of a command, and of the recoveries after it: the next command has it whole.

The trees that a stopped command can leave are found by running it on a disk that notes every call (``power.py``). The
next command is run on each of them, and is itself stopped at every point, and the command after that has it whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from figures import Figure

from .power import Disk
from .scenarios import COMMANDS, NAMES, Scenario, changes, die_at, difference, prepare, put, standing_between, tree
from .world import Footprint

Tree = frozenset[tuple[str, tuple[bytes, int, int]]]
JOURNAL = ".ddtree-patch/journal.json"
Runs = Callable[[], object]
FLOOR = 20  # a command changes the disk at least so often


@pytest.fixture(params=NAMES)
def scenario(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scenario:
    return prepare(request.param, tmp_path.resolve() / "world", monkeypatch)


def timeless(footprint: Footprint) -> Footprint:
    """Without the times of staged files, which the kernel sets at every write."""
    return {
        name: (data, mode, 0 if ".ddtree-patch-" in name else when) for name, (data, mode, when) in footprint.items()
    }


def test_killed_at_any_call(scenario: Scenario, figure: Figure) -> None:
    """A process that truly dies leaves what the model says that it leaves, and the next command has it whole."""
    expected = []
    disk = Disk.of(scenario.world.site, scenario.before)

    def call(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        if changes(function, arguments):
            expected.append(disk.now())
        return disk.call(function, *arguments, **options)

    with standing_between(call):
        scenario.run()
    assert len(expected) > FLOOR and disk.now() == scenario.world.footprint()
    for number, left in enumerate(expected, 1):
        scenario.reset()
        assert die_at(number, scenario.run)
        found = scenario.world.footprint()
        assert timeless(found) == timeless(left), difference(found, left)
        scenario.recover()
        scenario.whole()
    scenario.reset()
    assert not die_at(len(expected) + 1, scenario.run)
    figure("fault points: kill -9 of a process", len(expected))


class Explorer:
    """The trees that crashes leave, each once, and what the next command makes of them."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.points = 0
        self.seen: set[Tree] = set()
        self.left: list[Footprint] = []
        self.ends: set[str] = set()

    def watch(self, disk: Disk, run: Runs, exhaustive: int, killed: list[Disk] | None = None) -> None:
        """Run on a disk, and note every tree that a crash can leave; ``killed`` are given the disks after a kill."""

        def crash() -> None:
            self.points += 1
            for image in disk.after_a_power_cut(exhaustive):
                key = frozenset(image.items())
                if key not in self.seen:
                    self.seen.add(key)
                    self.left.append(image)

        def call(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
            if killed is not None and changes(function, arguments):
                killed.append(disk.copy())
            if changes(function, arguments) or (function is os.fsync and disk.pending):
                crash()
            return disk.call(function, *arguments, **options)

        with standing_between(call):
            run()
        crash()

    def found(self) -> list[Footprint]:
        """The trees that came up since it was last asked."""
        found, self.left = self.left, []
        return found

    def told(self, image: Footprint) -> None:
        """What is not whole is called interrupted."""
        put(self.scenario.world, image)
        said, found = self.scenario.look(), tree(image)
        if said != "interrupted":
            assert said in self.scenario.says.values()
            assert found in [tree(self.scenario.before), tree(self.scenario.after)], difference(
                found, tree(self.scenario.before)
            )

    def recovered(self, image: Footprint) -> str:
        """The next command has it whole."""
        put(self.scenario.world, image)
        self.scenario.recover()
        which = self.scenario.whole()
        self.ends.add(which)
        return which

    def recovered_on(self, disk: Disk) -> None:
        """The next command has it whole, on a disk that is watched."""
        put(self.scenario.world, disk.now())
        self.watch(disk, self.scenario.recover, exhaustive=1)
        assert disk.now() == self.scenario.world.footprint()
        self.ends.add(self.scenario.whole())


@pytest.mark.parametrize("scenario", COMMANDS, indirect=True)
def test_power_cuts_and_kills_at_any_call_and_in_the_recoveries_after_them(scenario: Scenario, figure: Figure) -> None:
    """A crash, then a crash in the recovery from it, then a recovery that is left in peace.

    The power can go after a kill, too: what the process that died had not synced is lost in the recovery after it.
    """
    explorer, site = Explorer(scenario), scenario.world.site
    disk = Disk.of(site, scenario.before)
    killed: list[Disk] = []
    explorer.watch(disk, scenario.run, 5, killed)
    assert len(killed) > FLOOR
    if scenario.before != scenario.after:
        for image in disk.after_a_power_cut():  # what the command said is done, is done
            assert explorer.recovered(image) == "after"
    for image in explorer.found():
        explorer.told(image)
        if JOURNAL in image:
            explorer.recovered_on(Disk.of(site, image))
        else:
            explorer.recovered(image)
    for one in killed:
        explorer.recovered_on(one)
    for image in explorer.found():
        explorer.recovered(image)
    assert explorer.ends == {"before", "after"} or scenario.before == scenario.after
    assert len(explorer.seen) > 5 * FLOOR
    figure("fault points: power cuts, in commands and in the recoveries after them", explorer.points)
    figure("trees that power cuts and kills can leave, each recovered", len(explorer.seen))
