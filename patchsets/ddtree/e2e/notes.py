"""What is seen of a batch while it runs, kept until its results are processed: under overlap, one batch later."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from .engine import Engine

Note = TypeVar("Note")


class BatchNotes(Generic[Note]):
    """Hands every batch's notes to ``take(requests, emitted, notes)``, in the order in which batches ran.

    ``emitted`` holds, by their place in the batch, the tokens of those requests that a verify step was counted for.
    Others are in a batch that decodes too: those that had ended when, under overlap, it was already on its way.
    """

    def __init__(self, engine: Engine, take: Callable[[list[Any], Mapping[int, int], list[Note]], None]) -> None:
        self._now: list[Note] = []
        self._waiting: deque[list[Note]] = deque()
        self._take = take
        engine.before_batch.append(self._begin)
        engine.after_batch.append(self._keep)
        engine.after_results.append(self._give)

    def add(self, note: Note) -> None:
        """Of the batch that runs."""
        self._now.append(note)

    def _begin(self, batch: Any) -> None:
        self._now = []

    def _keep(self, batch: Any) -> None:
        self._waiting.append(self._now)

    def _give(self, batch: Any, emitted: Mapping[int, int]) -> None:
        self._take(batch.reqs, emitted, self._waiting.popleft())
