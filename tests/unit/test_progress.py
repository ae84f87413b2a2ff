"""What takes time is told, what is over soon is not."""

from __future__ import annotations

import io
import time

import pytest

from ddtree_patcher.cli import progress as progress_module
from ddtree_patcher.cli.progress import MOVES_AFTER, PACE, SPEAKS_AFTER, STILL, MovingLine, PlainLines, elapsed, moves
from ddtree_patcher.cli.progress import progress as telling


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Log:
    """Plain lines, with a clock that is set by hand."""

    def __init__(self) -> None:
        self.clock, self.stream = Clock(), io.StringIO()
        self.lines = PlainLines("plan", self.stream, self.clock)

    def after(self, seconds: float, message: str = "") -> list[str]:
        """What was written when so much more time has gone by, and this was said last."""
        self.clock.now += seconds
        self.lines.message = message or self.lines.message
        self.lines.tick()
        return self.stream.getvalue().splitlines()


class TestPlainLines:
    def test_a_run_that_is_over_soon_says_nothing(self) -> None:
        log = Log()
        assert log.after(SPEAKS_AFTER / 2, "one") == []
        assert log.after(SPEAKS_AFTER / 2 - 0.1, "two") == []

    def test_what_is_being_done_then(self) -> None:
        log = Log()
        log.after(1.0, "one")
        assert log.after(SPEAKS_AFTER, "two") == ["… two"]

    def test_a_message_is_written_once(self) -> None:
        log = Log()
        log.after(SPEAKS_AFTER)
        assert log.after(PACE) == log.after(PACE) == ["… plan"]

    def test_of_many_the_last_one(self) -> None:
        log = Log()
        log.after(SPEAKS_AFTER, "0 of 9")
        for number in range(1, 5):
            log.after(PACE / 5, f"{number} of 9")
        assert log.after(PACE / 5, "5 of 9") == ["… 0 of 9", "… 5 of 9"]

    def test_a_sign_of_life(self) -> None:
        log = Log()
        log.after(SPEAKS_AFTER, "slow")
        assert log.after(STILL - 1) == ["… slow"]
        assert log.after(1) == ["… slow", "… slow (1:02)"]


class TestMovingLine:
    def test_it_comes_late_and_leaves_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock, stream = Clock(), io.StringIO()
        monkeypatch.setattr("sys.stderr", stream)
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "60")
        line = MovingLine("plan", clock)
        clock.now += MOVES_AFTER - 0.1
        line.tick()
        assert stream.getvalue() == ""
        clock.now += 2
        line.message = "a [/way] " + "x" * 100
        line.tick()
        shown = stream.getvalue()
        assert "a [/way] xxx" in shown and "…" in shown and "2 s" in shown
        assert shown.count("\n") == 0  # folded it would leave lines behind
        line.end()
        assert stream.getvalue().endswith("\x1b[2K")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("name", "value", "moving"),
    [
        ("TERM", "xterm", True),
        ("TERM", "dumb", False),
        ("CI", "true", False),
        ("NO_COLOR", "1", False),
        ("NO_COLOR", "", True),
        ("FORCE_COLOR", "1", True),
    ],
)
def test_where_a_line_can_move(name: str, value: str, moving: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in ("TERM", "CI", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, value)
    assert moves(Terminal()) is moving
    assert not moves(io.StringIO())


def test_elapsed() -> None:
    assert [elapsed(seconds) for seconds in (0.0, 7.9, 59.99, 60, 3671)] == ["0 s", "7 s", "59 s", "1:00", "61:11"]


def test_a_stream_that_nobody_reads_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr("sys.stderr", closed)
    monkeypatch.setattr(progress_module, "moves", lambda stream: False)
    monkeypatch.setattr(progress_module, "SPEAKS_AFTER", 0.0)
    with telling("plan", quiet=False) as say:
        say("one")
        time.sleep(0.3)
