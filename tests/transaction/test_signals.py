"""SIGINT and SIGTERM while no system call is made: everything back, exit code 8, and the handlers as they were.

At every system call: test_any_call_fails.py.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from ddtree_patcher import transaction
from ddtree_patcher.errors import Interrupted
from ddtree_patcher.model import CheckOutcome, CheckResult, ExitCode, Tier

from .scenarios import interrupt
from .world import World

SIGNALS = [signal.SIGINT, signal.SIGTERM]


def then(real: Callable[..., object], number: int) -> Callable[..., object]:
    def run(*args: object) -> object:
        result = real(*args)
        os.kill(os.getpid(), number)
        return result

    return run


def mine(number: int, frame: object) -> None:
    raise AssertionError("a signal reached the caller's own handler")


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Whatever happens, the caller's handlers are there again."""
    before = {number: signal.signal(number, mine) for number in SIGNALS}
    yield
    after = [signal.signal(number, handler) for number, handler in before.items()]
    assert after == [mine] * len(SIGNALS)


def test_while_the_checks_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = world.footprint()

    def slow(*_: object) -> tuple[CheckResult, ...]:
        os.kill(os.getpid(), signal.SIGTERM)
        return (CheckResult(Tier.IMPORT, "fine", CheckOutcome.PASSED),)

    monkeypatch.setattr("ddtree_patcher.operations.applying.run_tiers", slow)
    with pytest.raises(Interrupted):
        world.apply(Tier.IMPORT)
    assert world.footprint() == before


def test_a_second_signal_does_not_stop_the_way_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = world.footprint()
    monkeypatch.setattr(transaction._Work, "replace", then(transaction._Work.replace, signal.SIGINT))
    monkeypatch.setattr(
        transaction,
        "_restore",
        lambda *args, real=transaction._restore: (os.kill(os.getpid(), signal.SIGTERM), real(*args)),
    )
    with pytest.raises(Interrupted):
        world.apply()
    assert world.footprint() == before


def test_what_an_earlier_run_left_is_put_back_before_it_stops(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal in the middle of a recovery is kept until that has ended, and then nothing else is begun."""
    before = world.footprint()
    interrupt(world, World.apply)
    monkeypatch.setattr(transaction, "_restore", then(transaction._restore, signal.SIGTERM))
    with pytest.raises(Interrupted, match="SIGTERM; nothing was changed"):
        world.apply()
    assert world.footprint() == before


def test_outside_the_main_thread_signals_are_left_alone(world: World) -> None:
    outcomes: list[ExitCode] = []
    thread = threading.Thread(target=lambda: outcomes.append(world.apply().exit_code))
    thread.start()
    thread.join()
    assert outcomes == [ExitCode.OK]
