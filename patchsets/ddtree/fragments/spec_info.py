"""Goes into ``sglang/srt/speculative/spec_info.py`` and ``spec_registry.py``: what DDTREE is."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any


class SpeculativeAlgorithm(Enum):
    """The member and the predicate; ``is_dflash`` answers for the family by its own step."""

    DDTREE = auto()

    def is_ddtree(self) -> bool:
        return self == SpeculativeAlgorithm.DDTREE


class CustomSpecAlgo:
    """The registry demands that a third-party algorithm has every predicate of the enum."""

    def is_ddtree(self) -> bool:
        return False


def draft_width(self: SpeculativeAlgorithm, is_draft_worker: bool) -> int:  # type: ignore[return]
    """From 0.5.14 on: before ``return num_draft_tokens`` in the hook that gives the rows of a verify forward."""
    if self.is_ddtree() and is_draft_worker:
        from sglang.srt.speculative.ddtree_config import draft_width

        return int(draft_width())


def dummy_width_per_bs(spec_algorithm: Any, spec_info: Any, num_tokens_per_bs: int) -> None:
    """0.5.14 to 0.5.15.post1: in ``create_dummy_verify_input``: as wide as the forward that is rehearsed."""
    if spec_algorithm.is_ddtree():
        from sglang.srt.speculative.ddtree_config import as_wide_as

        spec_info = as_wide_as(spec_info, num_tokens_per_bs)


def dummy_width_per_req(spec_algorithm: Any, spec_info: Any, num_tokens_per_req: int) -> None:
    """From 0.5.16 on: at the same place."""
    if spec_algorithm.is_ddtree():
        from sglang.srt.speculative.ddtree_config import as_wide_as

        spec_info = as_wide_as(spec_info, num_tokens_per_req)
