"""The commands that write, each made ready to be run thousands of times on one tiny tree.

A command is planned once, by the real ``apply`` or ``revert``; what is run again and again is what it does to the disk:
recover what an earlier run left, and commit. The clock stands still and the process keeps its number, so that two
runs write the same bytes, times and names.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ddtree_patcher import disk, transaction
from ddtree_patcher.model import CheckOutcome, CheckResult, Tier
from ddtree_patcher.operations import inspecting
from ddtree_patcher.store import NAME, Store

from .world import CHANGED, Footprint, World

NOW = 1_700_000_000_000_000_000
_FAILED = CheckResult(Tier.STATIC, "broken", CheckOutcome.FAILED)


@dataclass(frozen=True)
class Scenario:
    """One command on one tree. ``run`` returns the checks that failed; the tree is ``before``, then ``after``."""

    world: World
    run: Callable[[], Sequence[CheckResult]]
    before: Footprint
    after: Footprint
    says: dict[str, str]  # "before" and "after" -> what `status` says of them
    look: Callable[[], str]  # what `status` says now

    def reset(self, found: Footprint | None = None) -> None:
        """As before again; ``found`` is what is there, where that is known."""
        if found != self.before:
            put(self.world, self.before, found)

    def recover(self) -> bool:
        """What every writing command does first; whether there was something."""
        return recover(self.world)

    def whole(self) -> str:
        """Which of the two the tree and the state folder are, wholly; what `status` says of it is in ``says``."""
        found = self.world.footprint()
        assert found in (self.before, self.after), difference(found, self.before, self.after)
        return "before" if found == self.before else "after"


def recover(world: World) -> bool:
    return transaction.recover(world.site, Store(world.state)) is not None


def tree(footprint: Footprint) -> Footprint:
    """The part that is not the tool's own folder."""
    return {name: value for name, value in footprint.items() if not name.startswith(NAME)}


def put(world: World, wanted: Footprint, found: Footprint | None = None) -> None:
    """Make the site exactly so, touching what differs from what is there."""
    found = world.footprint() if found is None else found
    for name in sorted(found, reverse=True):
        if name not in wanted:
            path = world.site / name
            path.rmdir() if name.endswith("/") else path.unlink()
    for name in sorted(wanted):
        if found.get(name) != wanted[name]:
            data, mode, when = wanted[name]
            path = world.site / name
            if name.endswith("/"):
                path.mkdir(exist_ok=True)
            else:
                path.unlink(missing_ok=True)
                path.write_bytes(data)
                os.utime(path, ns=(when, when))
            path.chmod(mode)


def difference(found: Footprint, *wanted: Footprint) -> str:
    """What is there, and is in none of those that are wanted, and the other way round."""
    lines = []
    for number, one in enumerate(wanted):
        names = sorted(name for name in {*found, *one} if found.get(name) != one.get(name))
        lines.append(f"from {number}: {[(name, found.get(name), one.get(name)) for name in names]}")
    return "\n".join(lines)


def _cached(world: World) -> None:
    """Bytecode of sources that will change, as an import leaves it."""
    for path in CHANGED:
        folder = (world.site / path).parent / "__pycache__"
        folder.mkdir(exist_ok=True)
        cache = folder / f"{Path(path).stem}.cpython-311.pyc"
        cache.write_bytes(b"old bytecode of " + path.encode())
        os.utime(cache, ns=(NOW // 2, NOW // 2))


def _first(world: World) -> object:
    return world.apply()


def _update(world: World) -> object:
    """Another version of the patchset: another value, and other content for the file that is added."""
    world.write_patchset(version="2", value="newer", content=b"y = 3\n")
    return world.apply()


def _drop(world: World) -> object:
    """A version without two of its steps: one file changes, one is given back, the added one goes."""
    world.write_patchset(version="2", value="newer", content=None)
    return world.apply(through="value")


def _revert(world: World) -> object:
    return world.revert()


_COMMANDS: dict[str, tuple[bool, Callable[[World], object], bool]] = {  # applied before, command, its check fails
    "apply": (False, _first, False),
    "update": (True, _update, False),
    "drop": (True, _drop, False),
    "revert": (True, _revert, False),
    "apply-fails": (False, _first, True),
    "drop-fails": (True, _drop, True),
}
RECOVERIES = {f"recover-{name}": name for name in ("apply", "drop", "revert")}
COMMANDS = tuple(_COMMANDS)
NAMES = (*COMMANDS, *RECOVERIES)


def prepare(name: str, base: Path, patch: pytest.MonkeyPatch) -> Scenario:
    """The scenario of that name in an empty folder. No disk is synced: the power stays on, or is cut by a model."""
    patch.setattr(transaction.time, "time_ns", lambda: NOW)
    patch.setattr(os, "fsync", lambda descriptor: None)
    patch.setattr(os, "getpid", lambda: 4711)
    world = World(base)
    world.install()
    world.write_patchset()
    _cached(world)
    if name in RECOVERIES:
        return _recovery(world, *_COMMANDS[RECOVERIES[name]][:2])
    applied, command, fails = _COMMANDS[name]
    if applied:
        world.apply()
    before = world.footprint()
    old = _status(world)
    arguments, options = _planned(world, command)
    if fails:
        arguments[4] = lambda: (_FAILED,)

    def run() -> Sequence[CheckResult]:
        recover(world)
        found = transaction.commit(*arguments, **options)
        return [item for item in found if item.outcome is CheckOutcome.FAILED]

    assert [item.outcome for item in run()] == ([CheckOutcome.FAILED] if fails else [])
    look = _status(world)
    scenario = Scenario(world, run, before, world.footprint(), {"before": "", "after": look()}, look)
    assert (scenario.after == before) is fails
    scenario.reset()
    # Of a tree that another version of the patchset was applied to, the new version says that it is outdated.
    assert old() in ("clean", "applied")
    scenario.says["before"] = look()
    assert scenario.says["before"] in ("clean", "applied", "outdated") and scenario.says["after"] != "interrupted"
    return scenario


def _status(world: World) -> Callable[[], str]:
    """`status`, with the installation looked up once: that is not what is asked here."""
    session = world.session()
    session.installation, session.description  # noqa: B018
    return lambda: inspecting.status(session, check=False).outcome


def _planned(world: World, command: Callable[[World], object]) -> tuple[list[Any], dict[str, Any]]:
    """What a command asks of the transaction."""
    seen: list[tuple[list[Any], dict[str, Any]]] = []

    class Planned(BaseException):
        pass

    def commit(*arguments: Any, **options: Any) -> None:
        seen.append((list(arguments), options))
        raise Planned

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Planned):
        patch.setattr(transaction, "commit", commit)
        command(world)
    return seen[0]


def interrupt(world: World, command: Callable[[World], object]) -> None:
    """A run of that command that dies just before its journal is removed: the most that a recovery can have to do."""
    arguments, options = _planned(world, command)

    class Dead(BaseException):
        pass

    def die(store: Store) -> None:
        raise Dead

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Dead):
        patch.setattr(Store, "end_journal", die)
        patch.setattr(transaction._Work, "put_back", lambda work: None)
        transaction.commit(*arguments, **options)


def _recovery(world: World, applied: bool, command: Callable[[World], object]) -> Scenario:
    """What the next command does first, after a run that died."""
    if applied:
        world.apply()
    before = world.footprint()
    interrupt(world, command)
    broken = world.footprint()
    look = _status(world)
    assert look() == "interrupted" and tree(broken) != tree(before)

    def run() -> Sequence[CheckResult]:
        assert recover(world)
        return ()

    run()
    assert world.footprint() == before, difference(world.footprint(), before)
    says = {"before": "interrupted", "after": look()}
    put(world, broken)
    return Scenario(world, run, broken, before, says, look)


@contextmanager
def standing_between(call: Callable[..., Any]) -> Iterator[None]:
    """``call(function, *args, **options)`` makes, or does not make, every system call of the writer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "_call", call)
        yield


def makes(function: Callable[..., Any], arguments: Sequence[Any]) -> bool:
    """Whether a call makes something new on the disk, and so takes room."""
    return function in (os.write, os.mkdir, os.replace) or (function is os.open and bool(arguments[1] & os.O_CREAT))


def changes(function: Callable[..., Any], arguments: Sequence[Any]) -> bool:
    """Whether a call changes the disk."""
    return makes(function, arguments) or function in (os.unlink, os.rmdir, os.fchmod, os.fchown, os.utime)


def die_at(number: int, run: Callable[[], object]) -> bool:
    """Runs in a child that kills itself instead of its ``number``-th call that changes the disk; whether it died."""
    child = os.fork()
    if child == 0:
        count = 0

        def call(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
            nonlocal count
            count += changes(function, arguments)
            if count == number:
                signal.raise_signal(signal.SIGKILL)
            return function(*arguments, **options)

        status = 1
        try:
            with standing_between(call):
                run()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the command failed by itself"
    return os.WIFSIGNALED(status)
