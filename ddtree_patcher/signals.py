"""SIGINT and SIGTERM while something must not be left half done: as exceptions, or kept until it is done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stopped(BaseException):
    """A signal, as an exception that no handler below the transaction catches."""


class Signals:
    """What becomes of a signal. One that was raised, or that came while they are held, is followed by no other."""

    def __init__(self) -> None:
        self.held = True
        self.kept = ""  # the name of the first that came while they were held

    def release(self) -> None:
        """From here on a signal is raised as :class:`Stopped`, one that was kept at once."""
        self.held = False
        if self.kept:
            self.held = True
            raise Stopped(self.kept)

    def arrive(self, number: int, frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        if self.held:
            self.kept = self.kept or name
        else:
            self.held = True  # the way back is not stopped by a second one
            raise Stopped(name)


@contextmanager
def signals_held() -> Iterator[Signals]:
    """Signals are kept, unless they are released; outside the main thread they are left alone."""
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    before = {number: signal.getsignal(number) or signal.SIG_DFL for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number in before:
            signal.signal(number, signals.arrive)
        yield signals
    finally:
        signals.held = True
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def signals_as_exceptions() -> Iterator[None]:
    with signals_held() as signals:
        signals.release()
        yield
