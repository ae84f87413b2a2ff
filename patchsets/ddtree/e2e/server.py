"""Holds one SGLang imported, and runs functions in forks of itself: a program for the probes' ``bootstrap.py``.

    server.py CHANNEL

CHANNEL is the number of an inherited socket. One JSON object a line comes in, ``{"module", "function", "arguments",
"environment", "time_limit"}``: a Python file, a function in it, its keyword arguments, variables set for it, seconds.
One goes out for each, ``{"value", "error", "printed"}``, see ``forks.Outcome``. It ends when the other side closes.
The file imports the modules beside this one as ``ddtree_patch_probe.engine`` and so on.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from .flags import preload
from .forks import Abandoned, call_in_fork


def checks() -> Iterator[tuple[str, Callable[[], str]]]:
    yield "served", partial(_serve, int(sys.argv[1]))


def _serve(channel: int) -> str:
    preload()
    served = 0
    with socket.socket(fileno=channel) as connection, connection.makefile("rw", encoding="utf-8") as lines:
        _say(lines, {"ready": True})
        for line in lines:
            call = json.loads(line)
            action = partial(_run, call["module"], call["function"], call["arguments"])
            try:
                outcome = call_in_fork(action, call["time_limit"], call["environment"], channel)
            except Abandoned:
                break
            served += 1
            _say(lines, asdict(outcome))
    return f"{served} calls"


def _run(module: str, function: str, arguments: dict[str, Any]) -> Any:
    """In the fork: the value of one function of one file, which may import what lies beside it."""
    path = Path(module)
    sys.path.insert(0, str(path.parent))
    return getattr(importlib.import_module(path.stem), function)(**arguments)


def _say(lines: Any, answer: object) -> None:
    lines.write(json.dumps(answer) + "\n")
    lines.flush()
