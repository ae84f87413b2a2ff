"""Places in a file as people look at them: a line with the few lines of code around it."""

from __future__ import annotations

from .codemods import Source
from .model import Place

_BEFORE, _AFTER = 2, 3  # lines of context


def place_in(source: Source, line: int, score: float = 1.0) -> Place:
    """A line of a file with its context."""
    shown = range(max(1, line - _BEFORE), min(source.line_count, line + _AFTER) + 1)
    context = tuple((number, _text(source.line(number))) for number in shown)
    return Place(source.path, line, round(score, 2), context)


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r\n")
