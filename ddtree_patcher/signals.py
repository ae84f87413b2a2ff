"""SIGINT and SIGTERM while something must not be left half done: as exceptions, or not at all."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Stopped(BaseException):
    """A signal, as an exception that no handler below the transaction catches."""


@contextmanager
def signals_as_exceptions() -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(signal.Signals(number).name)

    with _handlers(stop):
        yield


@contextmanager
def signals_ignored() -> Iterator[None]:
    with _handlers(signal.SIG_IGN):
        yield


@contextmanager
def _handlers(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
