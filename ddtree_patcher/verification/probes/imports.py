"""Imports each named module of SGLang's in a fresh process: a program for ``bootstrap.py``.

    imports.py [--time-limit SECONDS] MODULE [MODULE ...]

The fresh process is a fork of this one, which has loaded heavy third-party packages and never SGLang; where there is
no fork it is a new interpreter. A module that is loaded from another folder than the one under test is a failure.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

PRELOADED = (  # what takes long to load when SGLang is imported, and is none of SGLang's own
    "torch._dynamo",
    "torch._inductor.compile_fx",
    "torch.distributed.fsdp",
    "torch.distributed.tensor",
    "triton",
    "transformers.generation",
    "transformers.masking_utils",
    "transformers.models.auto",
    "compressed_tensors.quantization",
    "xgrammar",
    "aiohttp",
    "fastapi",
    "openai.types",
    "requests",
    "zmq",
    "IPython",
)
FOLDER_VARIABLE = "DDTREE_PATCH_PROBE_FOLDER"  # these two are set by bootstrap.py
STAND_INS_VARIABLE = "DDTREE_PATCH_PROBE_STAND_INS"

Answer = dict[str, str]


def checks() -> Iterator[tuple[str, Callable[[], str]]]:
    options = _parse(sys.argv[1:])
    ask = _ask_new_interpreter
    if hasattr(os, "fork"):
        _preload()
        ask = _ask_fork
    for module in options.modules:
        yield f"import:{module}", partial(_check, ask, module, options.time_limit)


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="imports.py")
    parser.add_argument("--time-limit", type=float, default=120.0, help="seconds a module")
    parser.add_argument("modules", nargs="+")
    return parser.parse_args(argv)


def _preload() -> None:
    for name in PRELOADED:
        with contextlib.suppress(Exception):  # the module that needs it will say so
            importlib.import_module(name)
    if "sglang" in sys.modules:
        raise RuntimeError("a third-party package has imported sglang: forks of this process would not be fresh")


def _check(ask: Callable[[str, float], Answer], module: str, time_limit: float) -> str:
    answer = ask(module, time_limit)
    if "missing" in answer:
        raise ModuleNotFoundError(answer["error"], name=answer["missing"])
    if "error" in answer:
        raise AssertionError(answer["error"])
    folder = os.environ[FOLDER_VARIABLE]
    path = os.path.realpath(answer["file"])
    if os.path.commonpath([folder, path]) != folder:
        raise AssertionError(f"{module} was loaded from {path}, which is not under {folder}")
    return f"loaded from {os.path.relpath(path, folder)}"


def _import(module: str) -> Answer:
    try:
        return {"file": str(importlib.import_module(module).__file__)}
    except ModuleNotFoundError as error:
        return {"missing": error.name or "", "error": f"{type(error).__name__}: {error}"}
    except BaseException as error:  # a module may also call sys.exit while it is imported
        return {"error": f"{type(error).__name__}: {error}"}


def _ask_fork(module: str, time_limit: float) -> Answer:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.write(writing, json.dumps(_import(module)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = _read(pipe.fileno(), time.monotonic() + time_limit)
    if text is None:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if text is None:
        return _timed_out(time_limit)
    return _parse_answer(text, os.waitstatus_to_exitcode(status))


def _read(pipe: int, deadline: float) -> bytes | None:
    """All that is written before the other end closes; None where the deadline comes first."""
    text = b""
    while select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(pipe, 65536)
        if not part:
            return text
        text += part
    return None


def _ask_new_interpreter(module: str, time_limit: float) -> Answer:
    command = [sys.executable, "-B", os.path.abspath(__file__), module]
    try:
        process = subprocess.run(command, stdout=subprocess.PIPE, timeout=time_limit, check=False)
    except subprocess.TimeoutExpired:
        return _timed_out(time_limit)
    return _parse_answer((process.stdout.splitlines() or [b""])[-1], process.returncode)


def _timed_out(time_limit: float) -> Answer:
    return {"error": f"still importing after {time_limit:g} seconds"}


def _parse_answer(text: bytes, status: int) -> Answer:
    if not text:
        return {"error": f"the process ended with status {status} while importing"}
    answer: Answer = json.loads(text)
    return answer


def _answer_for_one(module: str) -> None:
    """In a new interpreter: the same path and stand-ins as the process that started it."""
    bootstrap = importlib.import_module("bootstrap")  # beside this script, whose folder is first on the path
    bootstrap.put_on_path(os.environ[FOLDER_VARIABLE])
    bootstrap.keep_bytecode()
    folder, *names = json.loads(os.environ[STAND_INS_VARIABLE])
    bootstrap.StandIns(folder, names).install()
    answer = os.dup(1)
    os.dup2(2, 1)
    os.write(answer, json.dumps(_import(module)).encode())


if __name__ == "__main__":
    _answer_for_one(sys.argv[1])
