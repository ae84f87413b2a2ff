"""``kill -9`` at any point: the next command brings the tree back, whole, and leaves no litter.

A child process kills itself before the n-th call that changes the disk, for every n. Calls are counted, not named, so
that every boundary between two phases and between two files is among them.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ddtree_patcher.errors import Conflict
from ddtree_patcher.model import ExitCode

from .world import CHANGED, MODULES, World

DISK = ("replace", "unlink", "mkdir", "rmdir", "open", "fchmod")
Command = Callable[[World], object]


# Python 3.10's pathlib keeps its own names of the disk calls, so that fewer of them can be counted there.
POINTS = 20 if sys.version_info >= (3, 11) else 5


def apply(world: World) -> None:
    assert world.apply().exit_code is ExitCode.OK


def revert(world: World) -> None:
    assert world.revert().exit_code is ExitCode.OK


def update(world: World) -> None:
    """Another version of the patchset: one file changes, one is given back, one is removed."""
    world.write_patchset(version="2", value="newer", content=None)
    assert world.apply(through="value").exit_code is ExitCode.OK


def die_before(call: int, command: Command, world: World) -> int:
    """Run a command in a child that is killed before its ``call``-th disk call (from 1). Its signal, 0: it lived."""
    child = os.fork()
    if child == 0:
        count = 0

        def counted(real: Callable[..., object], name: str) -> Callable[..., object]:
            def run(*args: object, **options: object) -> object:
                nonlocal count
                reads = name == "open" and not int(args[1]) & (os.O_WRONLY | os.O_RDWR)  # type: ignore[call-overload]
                count += not reads
                if count == call and not reads:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **options)

            return run

        status = 1
        try:
            for name in DISK:
                setattr(os, name, counted(getattr(os, name), name))
            command(world)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the command failed by itself"
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def deaths(prepared: World, command: Command) -> Iterator[tuple[int, World]]:
    """A copy of a prepared world for every point at which the command can die."""
    for call in range(1, 1000):
        world = World(prepared.base.parent / f"death-{call}")
        shutil.copytree(prepared.base, world.base)
        if not die_before(call, command, world):
            assert call > POINTS, "the command hardly did anything"
            return
        yield call, world
        shutil.rmtree(world.base)
    raise AssertionError("the command never ends")


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process dies here, and the power stays on."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def pristine(world: World) -> World:
    return world


@pytest.fixture
def applied(world: World) -> World:
    apply(world)
    return world


def cached(world: World) -> None:
    """Bytecode of a source that will change, as an import leaves it."""
    for path in CHANGED:
        folder = (world.site / path).parent / "__pycache__"
        folder.mkdir(exist_ok=True)
        (folder / f"{Path(path).stem}.cpython-311.pyc").write_bytes(b"old bytecode of " + path.encode())


@pytest.mark.parametrize("command", [apply, update], ids=["apply", "update"])
def test_killed_while_it_is_first_applied(pristine: World, command: Command) -> None:
    cached(pristine)
    before = pristine.footprint()
    for call, world in deaths(pristine, command):
        interrupted = world.status() == "interrupted"
        world.recover()
        if interrupted:
            assert world.contents() == pristine.contents(), call
        revert(world)
        assert world.footprint() == before, call


@pytest.mark.parametrize("command", [update, revert], ids=["update", "revert"])
def test_killed_while_a_patched_tree_changes(world: World, command: Command) -> None:
    cached(world)
    before = world.footprint()
    apply(world)
    patched = world.contents()
    for call, copy in deaths(world, command):
        interrupted = copy.status() == "interrupted"
        copy.recover()
        if interrupted:
            assert copy.contents() == patched, call
        revert(copy)
        assert copy.footprint() == before, call


def test_the_command_itself_recovers_first_and_says_so(pristine: World) -> None:
    before, told = pristine.footprint(), 0
    undisturbed = World(pristine.base.parent / "undisturbed")
    shutil.copytree(pristine.base, undisturbed.base)
    apply(undisturbed)
    for call, world in deaths(pristine, apply):
        interrupted = world.status() == "interrupted"
        report = world.apply()
        assert report.exit_code is ExitCode.OK, call
        assert ("interrupted" in {item.code for item in report.diagnostics}) is interrupted
        told += interrupted
        assert world.status() == "applied"
        assert world.contents() == undisturbed.contents(), call  # RECORD too, which was read before the recovery
        revert(world)
        assert world.footprint() == before, call
    assert told > 5


def test_killed_while_it_recovers(applied: World) -> None:
    """The first death is in the middle of a revert, when files were replaced; the second at any point after that."""
    patched = applied.contents()
    middle = next(
        call for call, world in deaths(applied, revert) if len(patched.items() - world.contents().items()) > 1
    )
    broken = World(applied.base.parent / "broken")
    shutil.copytree(applied.base, broken.base)
    assert die_before(middle, revert, broken) == signal.SIGKILL
    assert broken.contents() != patched
    recovered = 0
    for call in range(1, 1000):
        world = World(applied.base.parent / f"twice-{call}")
        shutil.copytree(broken.base, world.base)
        lived = not die_before(call, World.recover, world)
        world.recover()
        assert world.contents() == patched, call
        if lived:
            break
        recovered += 1
    assert recovered > 5


def test_a_file_that_somebody_wrote_since_is_not_overwritten(applied: World) -> None:
    pristine = MODULES["tiny/alpha.py"].encode()
    call = next(call for call, world in deaths(applied, revert) if world.read("tiny/alpha.py") == pristine)
    die_before(call, revert, applied)
    (applied.site / "tiny/alpha.py").write_bytes(b"theirs = 1\n")
    before = applied.footprint()
    with pytest.raises(Conflict, match=r"tiny/alpha\.py changed after an interrupted run") as caught:
        applied.apply()
    assert caught.value.path == "tiny/alpha.py" and caught.value.remedy
    assert applied.footprint() == before


def test_nothing_to_recover(world: World) -> None:
    before = world.footprint()
    assert world.recover() is None
    assert world.footprint() == before


def test_status_and_verify_only_look(pristine: World) -> None:
    from ddtree_patcher.model import Tier
    from ddtree_patcher.operations.verifying import verify

    call = next(call for call, world in deaths(pristine, apply) if world.status() == "interrupted")
    die_before(call, apply, pristine)
    before = pristine.footprint()
    assert pristine.status() == "interrupted"
    report = verify(pristine.session(), Tier.STATIC, None)
    assert (report.exit_code, report.outcome) == (ExitCode.VERIFICATION_FAILED, "interrupted")
    assert pristine.footprint() == before
