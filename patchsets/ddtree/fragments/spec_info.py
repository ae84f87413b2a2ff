"""Goes into ``sglang/srt/speculative/spec_info.py`` and ``spec_registry.py``: what DDTREE is."""

from __future__ import annotations

from enum import Enum, auto


class SpeculativeAlgorithm(Enum):
    """The member and the predicate; ``is_dflash`` answers for the family by its own step."""

    DDTREE = auto()

    def is_ddtree(self) -> bool:
        return self == SpeculativeAlgorithm.DDTREE


class CustomSpecAlgo:
    """The registry demands that a third-party algorithm has every predicate of the enum."""

    def is_ddtree(self) -> bool:
        return False
