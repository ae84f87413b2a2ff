"""Goes into ``sglang/srt/speculative/dflash_worker.py``: the body, after ``self.server_args = server_args``."""

from __future__ import annotations

from typing import Any

from sglang.srt.speculative.spec_info import SpeculativeAlgorithm


def keep_algorithm(self: Any, server_args: Any) -> None:
    """The worker knows which algorithm of the DFLASH family it runs, and stops where it is DDTREE."""
    self.speculative_algorithm = SpeculativeAlgorithm.from_string(server_args.speculative_algorithm)
    if self.speculative_algorithm.is_ddtree():
        from sglang.srt.speculative.ddtree_args import stop_ddtree_worker

        stop_ddtree_worker()
