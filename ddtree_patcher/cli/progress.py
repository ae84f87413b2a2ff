"""What takes time says so on standard error: a moving line on a terminal, now and then a plain line elsewhere.

A run that is over soon says nothing: a line that only flickers tells nobody anything, and a log has no need of it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress

Say = Callable[[str], None]

MOVES_AFTER = 1.0  # seconds until a line appears on a terminal
SPEAKS_AFTER = 2.0  # seconds until one is written elsewhere
PACE = 5.0  # seconds between two plain lines at least; of what is said in between the last word counts
STILL = 60.0  # seconds after which a plain line is said once more: some CI systems end a job that is silent
_TICK = 0.1


class _Teller(Protocol):
    """Draws one message, which changes, for as long as a run lasts."""

    message: str

    def tick(self) -> None:
        """Called several times a second."""

    def end(self) -> None:
        """Called once, when the run is over."""


class PlainLines:
    """Lines for a log: the first when a run is not over soon, then one for each change, and a sign of life."""

    def __init__(self, message: str, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self.message = message
        self._stream, self._clock, self._began = stream, clock, clock()
        self._said, self._said_at = "", float("-inf")

    def tick(self) -> None:
        now, message = self._clock(), self.message
        since = now - self._said_at
        if now - self._began < SPEAKS_AFTER or since < PACE or (message == self._said and since < STILL):
            return
        again = f" ({elapsed(now - self._began)})" if message == self._said else ""
        print(f"… {message}{again}", file=self._stream, flush=True)
        self._said, self._said_at = message, now

    def end(self) -> None:
        return


class MovingLine:
    """One line at the bottom of a terminal, with the time that has gone by; nothing is left of it."""

    def __init__(self, message: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.message = message
        self._clock, self._began = clock, clock()
        self._drawn: Progress | None = None

    def tick(self) -> None:
        if self._drawn is None and self._clock() - self._began >= MOVES_AFTER:
            self._drawn = _line()
            self._drawn.add_task("", message="", took="")
            self._drawn.start()
        if self._drawn is not None:
            took = elapsed(self._clock() - self._began)
            message = _cut(self.message, self._drawn.console.width - len(took) - 4)  # the spinner and the gaps
            self._drawn.update(self._drawn.task_ids[0], message=message, took=took)
            self._drawn.refresh()

    def end(self) -> None:
        if self._drawn is not None:
            self._drawn.stop()


def _line() -> Progress:
    from rich.console import Console  # late: a run that is over soon draws nothing
    from rich.progress import Progress, SpinnerColumn, TextColumn

    console = Console(stderr=True)
    spinner = SpinnerColumn("dots" if console.encoding.startswith("utf") else "line")
    words = TextColumn("{task.fields[message]}", markup=False)
    took = TextColumn("{task.fields[took]}", style="dim")
    return Progress(spinner, words, took, console=console, transient=True, auto_refresh=False)


def _cut(message: str, width: int) -> str:
    """As much of a message as there is room for: folded, a line that moves would leave others behind."""
    from rich.cells import cell_len, set_cell_size

    line = " ".join(message.split("\n"))
    return line if cell_len(line) <= width else f"{set_cell_size(line, max(width - 1, 0))}…"


def elapsed(seconds: float) -> str:
    """``7 s``, ``1:07``."""
    whole = int(seconds)
    return f"{whole // 60}:{whole % 60:02}" if whole >= 60 else f"{whole} s"


def moves(stream: TextIO) -> bool:
    """Whether a line on it can be drawn over: a terminal that is no log of a CI system, and no wish for plain text."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("CI") or os.environ.get("TERM") in ("dumb", "unknown")
    return stream.isatty() and not plain


@contextmanager
def progress(message: str, *, quiet: bool) -> Iterator[Say]:
    """Gives a function that is told what is being done now; ``message`` is shown until it is told anything."""
    if quiet:
        yield lambda message: None
        return
    teller: _Teller = MovingLine(message) if moves(sys.stderr) else PlainLines(message, sys.stderr)

    def say(message: str) -> None:
        teller.message = message

    over = threading.Event()
    thread = threading.Thread(target=_tell, args=(teller, over), name="progress", daemon=True)
    thread.start()
    try:
        yield say
    finally:
        over.set()
        thread.join()


def _tell(teller: _Teller, over: threading.Event) -> None:
    """Works beside the run, which alone is told of signals. A terminal that is closed is no reason to fail."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        while not over.wait(_TICK):
            teller.tick()
    except (OSError, ValueError):  # nobody reads it any more
        return
    finally:
        teller.end()
