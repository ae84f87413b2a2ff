"""Runs a function in a fork of this process, so that SGLang is imported once and started many times.

A fork begins with all that is loaded here and leaves nothing behind: its output goes to a file, its temporary files to
a folder, and both are gone when it has ended. Whatever happens to it, a crash or a hang too, becomes an answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TAIL = 6000  # characters of what a failed fork printed


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a fork ended: with a JSON value, or with the reason why there is none."""

    value: Any = None
    error: str = ""  # empty where there is a value; the traceback where the function raised
    printed: str = ""  # the end of what a failed fork wrote to standard output and error


class Abandoned(RuntimeError):
    """Whoever asked for the answer has gone."""


def call_in_fork(
    action: Callable[[], Any], time_limit: float, environment: Mapping[str, str] | None = None, watched: int = -1
) -> Outcome:
    """The JSON value of ``action()``, run in a fork under more environment variables.

    ``time_limit`` is in seconds. ``watched`` is a file descriptor: when it becomes readable, nobody waits for the
    answer any more; the fork is killed and ``Abandoned`` raised.
    """
    with tempfile.TemporaryDirectory(prefix="ddtree-e2e-", ignore_cleanup_errors=True) as scratch:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            if watched >= 0:
                os.close(watched)  # the other side sees the end of this process, not of its forks
            _answer(action, writing, Path(scratch), environment or {})
        os.close(writing)
        try:
            text = _read(reading, time.monotonic() + time_limit, watched)
        finally:
            os.close(reading)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)  # it has answered, or will not
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return _outcome(text, status, time_limit, _tail(Path(scratch) / "printed"))


def _answer(action: Callable[[], Any], pipe: int, scratch: Path, environment: Mapping[str, str]) -> None:
    """The life of a fork; it never returns."""
    try:
        _move_into(scratch, environment)
        answer = {"value": action()}
        text = json.dumps(answer)
    except BaseException:  # SystemExit, as argparse raises it, is an answer too
        text = json.dumps({"error": traceback.format_exc()})
    try:
        sys.stdout.flush()
        sys.stderr.flush()
        with os.fdopen(pipe, "w", encoding="utf-8") as answers:
            answers.write(text)
    finally:
        os._exit(0)


def _move_into(scratch: Path, environment: Mapping[str, str]) -> None:
    printed = os.open(scratch / "printed", os.O_WRONLY | os.O_CREAT)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    os.chdir(scratch)
    tempfile.tempdir = os.environ["TMPDIR"] = str(scratch)
    os.environ["SGLANG_DISTRIBUTED_INIT_METHOD_OVERRIDE"] = f"file://{scratch}/rendezvous"  # no port, so no clash
    os.environ.update(environment)


def _read(pipe: int, deadline: float, watched: int) -> str | None:
    """All that is written before the other end closes; None where the deadline comes first."""
    text = b""
    while True:
        wanted = [pipe] if watched < 0 else [pipe, watched]
        ready = select.select(wanted, [], [], max(0.0, deadline - time.monotonic()))[0]
        if not ready:
            return None
        if watched in ready:
            raise Abandoned
        part = os.read(pipe, 65536)
        if not part:
            return text.decode()
        text += part


def _outcome(text: str | None, status: int, time_limit: float, printed: str) -> Outcome:
    if text is None:
        return Outcome(error=f"no answer within {time_limit:g} seconds", printed=printed)
    if not text:
        return Outcome(error=f"ended with status {status} before it answered", printed=printed)
    answer = json.loads(text)
    if "error" in answer:
        return Outcome(error=answer["error"], printed=printed)
    return Outcome(value=answer["value"])


def _tail(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")[-_TAIL:] if path.exists() else ""
