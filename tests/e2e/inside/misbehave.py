"""Forks that do not end well."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import NoReturn


def crash() -> NoReturn:
    print("about to crash", flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(60)
    raise AssertionError("still alive")


def hang() -> None:
    print("about to hang", flush=True)
    time.sleep(600)


def leave() -> NoReturn:
    sys.exit("has to go")


def answer_nonsense() -> object:
    return {1, 2}


def where() -> dict[str, object]:
    """What a fork sees of its surroundings."""
    import torch

    return {
        "pid": os.getpid(),
        "folder": os.getcwd(),
        "threads": torch.get_num_threads(),
        "variable": os.environ.get("SGLANG_DDTREE_SPINE", ""),
        "sglang": os.path.dirname(sys.modules["sglang"].__file__ or ""),
    }


def sleep_in_a_child() -> None:
    subprocess.run(["sleep", "600"], check=True)
