"""Groups of which rank 1 does not end well, and rank 0 waits."""

from __future__ import annotations

import os
from typing import Any

import misbehave
from tensor_parallel_ranks import run_ranks


def rank_1_does(what: str, seconds: float) -> Any:
    """``what`` is a function of ``misbehave.py``."""

    def act(rank: int) -> Any:
        print(f"rank {rank} is process {os.getpid()}", flush=True)
        return getattr(misbehave, what if rank else "hang")()

    return run_ranks(act, ranks=2, time_limit=seconds)


def ranks_hang() -> Any:
    """Longer than whoever waits for them."""
    return rank_1_does("hang", seconds=300.0)
