"""SIGINT and SIGTERM: everything back, exit code 8, and the handlers as they were."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from ddtree_patcher import transaction
from ddtree_patcher.errors import Interrupted
from ddtree_patcher.model import CheckOutcome, CheckResult, ExitCode, Tier
from ddtree_patcher.store import Store

from .world import World

SIGNALS = [signal.SIGINT, signal.SIGTERM]
PHASES = [
    (transaction._Work, "begin"),
    (transaction._Work, "stage"),
    (transaction._Work, "replace"),
    (transaction._Work, "read_back"),
    (Store, "write_state"),
]


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


@pytest.mark.parametrize("number", SIGNALS, ids=lambda item: item.name)
@pytest.mark.parametrize(("holder", "phase"), PHASES, ids=lambda item: item if isinstance(item, str) else "")
@pytest.mark.parametrize("command", ["apply", "update", "revert"])
def test_after_a_phase(
    world: World, monkeypatch: pytest.MonkeyPatch, command: str, holder: type, phase: str, number: signal.Signals
) -> None:
    if command != "apply":
        world.apply()
    if command == "update":
        world.write_patchset(version="2", value="newer", content=None)
    before, status = world.footprint(), world.status()
    monkeypatch.setattr(holder, phase, then(getattr(holder, phase), number))
    with pytest.raises(Interrupted, match=f"stopped by {number.name}; everything was put back") as caught:
        world.revert() if command == "revert" else world.apply()
    assert caught.value.exit_code is ExitCode.INTERRUPTED
    assert world.footprint() == before and world.status() == status


@pytest.mark.parametrize("call", range(1, 5))
def test_between_two_files(world: World, monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    before, real, count = world.footprint(), os.replace, 0

    def counted(source: object, target: object) -> None:
        nonlocal count
        real(source, target)  # type: ignore[arg-type]
        count += ".ddtree-patch/" not in str(target)
        if count == call:
            count = 100
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(os, "replace", counted)
    with pytest.raises(Interrupted):
        world.apply()
    assert count >= 100
    assert world.footprint() == before


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


@pytest.mark.parametrize("when", ["write_journal", "clean"])
def test_once_the_change_stands_it_is_not_called_interrupted(
    world: World, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """A signal between the end of the journal and the end of the run must not say that everything was put back."""
    real = getattr(Store, when)

    def late(store: Store, *args: object) -> None:
        real(store, *args)
        if args in ((), (None,)) and store.state() is not None:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Store, when, late)
    assert world.apply().exit_code is ExitCode.OK
    monkeypatch.undo()
    assert world.status() == "applied"


def test_outside_the_main_thread_signals_are_left_alone(world: World) -> None:
    outcomes: list[ExitCode] = []
    thread = threading.Thread(target=lambda: outcomes.append(world.apply().exit_code))
    thread.start()
    thread.join()
    assert outcomes == [ExitCode.OK]
