"""What a codemod answers: a closed union of values. Exceptions stay inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ..model import StepOutcome


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place that looks like the one that was wanted."""

    line: int  # 1-based
    text: str  # the first line of its code
    score: float = 1.0  # 0..1, 1 for places that match in full; 0: where it was looked for, and nothing comes near


@dataclass(frozen=True, slots=True)
class Splice:
    """Replace ``data[start:end]`` (byte offsets) by ``new``; start == end inserts."""

    start: int
    end: int
    new: bytes


@dataclass(frozen=True, slots=True)
class Found:
    """Exactly one place: the change to make there. ``line`` is where it is."""

    splice: Splice
    line: int


@dataclass(frozen=True, slots=True)
class AlreadySo:
    """The code already says what this codemod would make it say."""

    line: int


@dataclass(frozen=True, slots=True)
class NotFound:
    """No place, or several, or one that half says it: ``outcome`` tells which."""

    outcome: StepOutcome  # anchor_missing, anchor_ambiguous or half_upstreamed
    wanted: str  # what was looked for, in words
    candidates: tuple[Candidate, ...] = ()  # empty when nothing is even near
    expected: str = ""  # the code that was to be there; empty when it is the codemod's target


Location: TypeAlias = Found | AlreadySo | NotFound


def apply_splices(data: bytes, splices: list[Splice]) -> bytes:
    """Make several changes at once; they must not overlap."""
    pieces: list[bytes] = []
    position = 0
    for splice in sorted(splices, key=lambda item: (item.start, item.end)):
        if splice.start < position:
            raise ValueError(f"overlapping changes at byte {splice.start}")
        pieces += (data[position : splice.start], splice.new)
        position = splice.end
    return b"".join([*pieces, data[position:]])
