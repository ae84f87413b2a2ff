"""Runs a command in a process group of its own and listens to it until it ends, or its time, or this process.

Nothing of the group outlives the call: what the command leaves running is killed with it. The command finds an open
pipe under the number in ``PROGRESS_VARIABLE``; the lines that it writes there are passed on while it runs.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PROGRESS_VARIABLE = "DDTREE_PATCH_PROBE_PROGRESS"
PACE = 0.5  # seconds between two lines that are passed on; of those in between the last one counts

_POLL = 0.1  # seconds until a process that has left its pipes open to others is seen to have ended
_DRAIN = 1.0  # seconds for what was written before the end; a process that left the group may write for ever
_KEPT = 65536  # bytes of standard error: a server writes megabytes

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and what it wrote."""

    status: int | None  # None: the time limit was over
    answer: str  # standard output
    errors: str  # the end of standard error
    progress: str  # the last line of progress; empty where there was none


def supervise(command: Sequence[str], folder: Path, environment: Mapping[str, str], limit: float, say: Say) -> Ended:
    """Run a command in ``folder`` for at most ``limit`` seconds. Raises OSError where it cannot be started."""
    deadline = time.monotonic() + limit
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", buffering=0) as progress:
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env={**environment, PROGRESS_VARIABLE: str(writing)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(writing,),
                start_new_session=True,
            )
        finally:
            os.close(writing)
        with process, _Listener(process, progress.fileno(), say) as listener:
            try:
                in_time = listener.listen(deadline)
            finally:  # a signal may interrupt this process
                _kill_group(process)
            status = process.wait()
            listener.drain()
            return listener.ended(status if in_time else None)


class _Listener:
    """Reads everything that a process writes, so that it is never kept waiting."""

    def __init__(self, process: subprocess.Popen[bytes], progress: int, say: Say) -> None:
        assert process.stdout is not None and process.stderr is not None
        self.process = process
        self.say = say
        self.answer, self.errors, self.unfinished = bytearray(), bytearray(), bytearray()
        self.heard = self.said = ""
        self.said_at = time.monotonic()
        self.selector = selectors.DefaultSelector()
        self.selector.register(process.stdout, selectors.EVENT_READ, self.answer.extend)
        self.selector.register(process.stderr, selectors.EVENT_READ, self._hear_errors)
        self.selector.register(progress, selectors.EVENT_READ, self._hear_progress)

    def __enter__(self) -> _Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self.selector.close()

    def listen(self, deadline: float) -> bool:
        """Until the process ends (True) or the deadline comes."""
        while self.process.poll() is None:
            if time.monotonic() >= deadline:
                return False
            if self.selector.get_map():
                self._read(_POLL)
            else:
                time.sleep(_POLL)
            self._speak()
        return True

    def drain(self) -> None:
        """What is still in the pipes."""
        until = time.monotonic() + _DRAIN
        while self.selector.get_map() and self._read(0.0) and time.monotonic() < until:
            pass

    def ended(self, status: int | None) -> Ended:
        answer, errors = (bytes(data).decode("utf-8", "replace") for data in (self.answer, self.errors))
        return Ended(status, answer, errors, self.heard)

    def _read(self, patience: float) -> bool:
        """Whether anything came within ``patience`` seconds."""
        ready = self.selector.select(patience)
        for key, _ in ready:
            data = os.read(key.fd, 65536)
            if data:
                key.data(data)
            else:
                self.selector.unregister(key.fileobj)
        return bool(ready)

    def _hear_errors(self, data: bytes) -> None:
        self.errors += data
        del self.errors[:-_KEPT]

    def _hear_progress(self, data: bytes) -> None:
        self.unfinished += data
        *lines, rest = bytes(self.unfinished).split(b"\n")
        self.unfinished = bytearray(rest)
        if lines:
            self.heard = lines[-1].decode("utf-8", "replace")

    def _speak(self) -> None:
        if self.heard != self.said and time.monotonic() - self.said_at >= PACE:
            self.say(self.heard)
            self.said, self.said_at = self.heard, time.monotonic()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # gone, or (macOS) only its remains are there
        os.killpg(process.pid, signal.SIGKILL)
