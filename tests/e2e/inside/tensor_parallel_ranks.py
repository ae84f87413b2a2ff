"""Runs a function in a process for each rank of a group; none of them outlives the call, or the caller."""

from __future__ import annotations

import faulthandler
import multiprocessing
import multiprocessing.connection
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

_TO_TELL = 2.0  # seconds before the time limit at which a rank prints where it is


class RankError(RuntimeError):
    """A rank raised, crashed or hung; the message says which, and all that is known of it."""


def run_ranks(action: Callable[[int], Any], ranks: int, time_limit: float) -> list[Any]:
    """The values of ``action(0)``, ``action(1)`` …, each from a fork of this process, in the order of ranks.

    All are given up where one fails, as the others would wait for it, or where one takes more than ``time_limit``
    seconds: RankError.
    """
    context = multiprocessing.get_context("fork")
    processes: list[BaseProcess] = []
    answers: dict[Connection, int] = {}
    try:
        for rank in range(ranks):
            ours, theirs = context.Pipe(duplex=False)
            processes.append(context.Process(target=_live, args=(action, rank, theirs, time_limit)))
            processes[rank].start()
            theirs.close()
            answers[ours] = rank
        return _collect(answers, processes, time_limit)
    finally:
        for process in processes:
            process.kill()
            process.join()


def _collect(answers: dict[Connection, int], processes: list[BaseProcess], time_limit: float) -> list[Any]:
    deadline = time.monotonic() + time_limit
    waiting, values = dict(answers), {}
    while waiting:
        ready = multiprocessing.connection.wait(list(waiting), max(0.0, deadline - time.monotonic()))
        if not ready:
            silent = " and ".join(f"rank {rank}" for rank in sorted(waiting.values()))
            raise RankError(f"no answer of {silent} within {time_limit:g} seconds")
        for connection in ready:
            assert isinstance(connection, Connection)
            rank = waiting.pop(connection)
            values[rank] = _value(connection, rank, processes[rank])
    return [values[rank] for rank in sorted(values)]


def _value(connection: Connection, rank: int, process: BaseProcess) -> Any:
    try:
        value, error = connection.recv()
    except EOFError:
        process.join()
        value, error = None, f"it ended with status {process.exitcode}"
    if error:
        raise RankError(f"rank {rank}: {error}")
    return value


def _live(action: Callable[[int], Any], rank: int, answer: Connection, time_limit: float) -> None:
    """The life of a rank; it never returns, whatever threads SGLang has left."""
    threading.Thread(target=_die_with_the_parent, daemon=True).start()
    faulthandler.dump_traceback_later(max(_TO_TELL, time_limit - _TO_TELL))
    try:
        said = action(rank), ""
    except BaseException:  # SystemExit, as argparse raises it, is an answer too
        said = None, traceback.format_exc()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
        answer.send(said)
    finally:
        os._exit(0)


def _die_with_the_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
