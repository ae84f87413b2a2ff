"""Each system call of the writer, one after the other, fails or is interrupted: everything is whole, and said so.

No call is left out: the writer reaches the disk through ``disk._call`` alone (tests/unit/test_architecture.py).
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ddtree_patcher.errors import EnvironmentRefused, Interrupted, PatchError
from ddtree_patcher.model import CheckResult
from figures import Figure

from .scenarios import NAMES, Scenario, changes, difference, makes, prepare, standing_between, tree
from .world import Footprint, World

ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EROFS)
SIGNALS = (signal.SIGINT, signal.SIGTERM)
Call = tuple[Callable[..., Any], Sequence[Any]]
FLOOR = 40  # a command makes more system calls than this


def error_at(error: int, function: Callable[..., Any], arguments: Sequence[Any]) -> OSError:
    if function is os.close:  # the descriptor is gone whatever close(2) says
        os.close(arguments[0])
    return OSError(error, os.strerror(error), str(arguments[0]))


@dataclass
class Faulty:
    """Stands between the writer and the disk; ``fault`` does the ``at``-th call (from 1), or all from there on."""

    at: int
    fault: Callable[..., Any]
    forever: bool
    count: int = 0

    def __call__(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        self.count += 1
        if self.count == self.at or (self.forever and self.count > self.at):
            return self.fault(function, *arguments, **options)
        return function(*arguments, **options)


@dataclass
class Point:
    """What came of one run: the number of the call that was not made as usual, and what came out."""

    at: int
    end: int  # the number of the call that removes the journal; 0: none does
    caught: PatchError | None
    failed: Sequence[CheckResult]
    left: Footprint  # what is there now
    whole: bool  # the tree was whole at once, before the next command


def trace(scenario: Scenario) -> list[Call]:
    """The system calls of a run that nothing disturbs; one that is disturbed at the n-th makes the same first n."""
    calls: list[Call] = []

    def record(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        calls.append((function, arguments))
        return function(*arguments, **options)

    with standing_between(record):
        scenario.run()
    scenario.reset()
    assert len(calls) > FLOOR, "the command hardly did anything"
    return calls


def every_point(
    scenario: Scenario,
    fault: Callable[..., Any],
    at: Callable[[Callable[..., Any], Sequence[Any]], bool] | None = None,
    *,
    forever: bool = False,
) -> Iterator[Point]:
    """Runs the command with ``fault`` in place of each call in turn, or of all from there on, on a tree as before."""
    calls = trace(scenario)
    trees = (tree(scenario.before), tree(scenario.after))
    ends = [number for number, call in enumerate(calls, 1) if call[0] is os.unlink and "journal.json" in str(call[1])]
    for number, call in enumerate(calls, 1):
        if at is not None and not at(*call):
            continue
        faulty = Faulty(number, fault, forever)
        caught, failed = None, ()
        with standing_between(faulty):
            try:
                failed = scenario.run()
            except PatchError as error:
                caught = error
        assert faulty.count >= number
        left = scenario.world.footprint()
        whole = left == scenario.before or tree(left) in trees
        point = Point(number, max(ends, default=0), caught, failed, left, whole)
        yield point
        scenario.reset(point.left)


@pytest.fixture(params=NAMES)
def scenario(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scenario:
    return prepare(request.param, tmp_path.resolve() / "world", monkeypatch)


def anything(function: Callable[..., Any], arguments: Sequence[Any]) -> bool:
    return True


def writes_much(function: Callable[..., Any], arguments: Sequence[Any]) -> bool:
    return function is os.write and len(arguments[1]) > 1


def is_recovery(scenario: Scenario) -> bool:
    return scenario.says["before"] == "interrupted"


def settled(scenario: Scenario, point: Point) -> None:
    """The next command has everything whole, and without litter: done where the command said so, else undone."""
    if point.left not in (scenario.before, scenario.after) or is_recovery(scenario):
        scenario.recover()
        point.left = scenario.world.footprint()
    done = is_recovery(scenario) or point.caught is None
    wanted = scenario.after if done else scenario.before
    assert point.left == wanted, (point.at, difference(point.left, wanted))


def fails_once(scenario: Scenario, error: int) -> int:
    """Either nothing was done, or all of it where only the tidying failed; what is left the next command removes."""

    def fail(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        raise error_at(error, function, arguments)

    points = refused = 0
    for point in every_point(scenario, fail):
        points += 1
        if point.caught is not None:
            refused += 1
            assert isinstance(point.caught, EnvironmentRefused), point.at
            assert point.caught.remedy and os.strerror(error) in point.caught.summary
        assert point.whole or is_recovery(scenario), point.at
        settled(scenario, point)
    assert refused > FLOOR / 3
    return points


def fails_from_there_on(scenario: Scenario, error: int) -> int:
    """A disk that stays full, fails, or is read-only from now on: the journal is kept until it is better."""
    hit = {errno.ENOSPC: makes, errno.EACCES: changes, errno.EROFS: changes, errno.EIO: anything}[error]

    def fail(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        if hit(function, arguments):
            raise error_at(error, function, arguments)
        return function(*arguments, **options)

    points = stuck = 0
    for point in every_point(scenario, fail, hit, forever=True):
        points += 1
        if point.caught is None:
            assert point.whole, point.at
        else:
            assert isinstance(point.caught, EnvironmentRefused) and point.caught.remedy, point.at
            if "Everything was put back" in point.caught.remedy:
                assert point.whole, point.at
            elif "could not be put back" in point.caught.summary:
                stuck += 1
                assert scenario.look() == "interrupted", point.at
        settled(scenario, point)
    assert stuck, "nothing was ever stuck: the disk was not broken enough"
    return points


def stopped_by(scenario: Scenario, number: signal.Signals) -> int:
    """Put back and exit code 8; done where it came after the end. A recovery goes on to its end, and then stops."""

    def stop(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        signal.raise_signal(number)
        return function(*arguments, **options)

    points = stopped = 0
    mine = signal.getsignal(number)
    for point in every_point(scenario, stop):
        points += 1
        assert signal.getsignal(number) is mine
        if point.caught is not None:
            stopped += 1
            assert isinstance(point.caught, Interrupted) and number.name in point.caught.summary
            wanted = scenario.after if is_recovery(scenario) else scenario.before
            assert point.left == wanted, point.at
        else:
            assert point.failed or point.at >= point.end > 0, point.at
            assert point.left == scenario.after, point.at
    assert stopped > FLOOR / 2
    return points


def test_any_call_fails_once(scenario: Scenario, figure: Figure) -> None:
    for error in ERRORS:
        figure(f"fault points: a system call fails once, {errno.errorcode[error]}", fails_once(scenario, error))


def test_all_calls_fail_from_there_on(scenario: Scenario, figure: Figure) -> None:
    for error in ERRORS:
        points = fails_from_there_on(scenario, error)
        figure(f"fault points: system calls fail from there on, {errno.errorcode[error]}", points)


@pytest.fixture
def handlers() -> Iterator[None]:
    """Handlers of the caller's, which no signal may reach while the disk is written to."""

    def mine(number: int, frame: object) -> None:
        raise AssertionError("a signal reached the caller's own handler")

    before = {number: signal.signal(number, mine) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_signal_at_any_call(scenario: Scenario, handlers: None, figure: Figure) -> None:
    for number in SIGNALS:
        figure(f"fault points: {number.name} at a system call", stopped_by(scenario, number))


def test_any_write_is_short(scenario: Scenario, figure: Figure) -> None:
    """write(2) may take less than it was given: it is gone on with, and where there is no room then, put back."""

    def short(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        return os.write(arguments[0], arguments[1][: len(arguments[1]) // 2])

    def torn(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        short(function, *arguments, **options)
        raise error_at(errno.ENOSPC, function, arguments)

    points = 0
    for point in every_point(scenario, short, writes_much):
        points += 1
        assert point.caught is None, point.at
        assert point.left == scenario.after, point.at
    for point in every_point(scenario, torn, writes_much):
        points += 1
        assert isinstance(point.caught, EnvironmentRefused), point.at
        settled(scenario, point)
    assert points >= 6
    figure("fault points: a short write, alone and before ENOSPC", points)


@pytest.mark.parametrize(
    ("where", "said", "remedy"),
    [
        (".ddtree-patch/", r"state folder .* is not writable: Read-only", "--state-dir"),
        ("/tiny/", "cannot be written: Read-only", "Everything was put back"),
    ],
    ids=["the state folder", "the package"],
)
def test_what_is_read_only_is_named(world: World, where: str, said: str, remedy: str) -> None:
    before = world.footprint()

    def refuse(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        if makes(function, arguments) and where in str(arguments[0]):
            raise error_at(errno.EROFS, function, arguments)
        return function(*arguments, **options)

    with standing_between(refuse), pytest.raises(EnvironmentRefused, match=said) as caught:
        world.apply()
    assert remedy in caught.value.remedy
    assert world.footprint() == before
