"""A diagnostic for people: what is wrong and where, what was expected, what came near, since when, and what to do."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from ..model import Diagnostic, History, Place
from .tables import say

_WHOLE = 2  # candidates that are shown with the code around them
_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def draw(item: Diagnostic, console: Console) -> None:
    """From the summary, which says all to those who know, down to the remedy, which is for those who do not."""
    place = f"{item.path}:{item.line}" if item.path and item.line else item.path
    console.print()
    heading = Text.assemble((f"{item.severity} [{item.code}] ", _STYLES[item.severity.value]), shown(item.summary))
    say(console, heading)
    if place and place not in item.summary and not item.candidates:
        console.print(Text(f"  at {shown(place)}", style="dim"), soft_wrap=True)
    if item.expected:
        _heading("expected", "", console)
        for line in shown(item.expected).splitlines():
            _code(Text(f"      {line}", style="dim" if line.startswith("#") else ""), console)
    for number, candidate in enumerate(item.candidates):
        _candidate(candidate, console, whole=number < _WHOLE)
    for line in shown(item.detail).splitlines():
        say(console, Text(line.lstrip()), 2 + len(line) - len(line.lstrip()))
    if history := "; ".join(_history(item.history)):
        say(console, Text.assemble(("history: ", "cyan"), shown(history)), 2)
    if item.remedy:
        say(console, Text.assemble(("remedy: ", "green"), shown(item.remedy)), 2)


def shown(text: str) -> str:
    """Text of unknown origin (a path, a line of code) that tells a terminal nothing: control characters as escapes."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else ascii(letter)[1:-1] for letter in text)


def _candidate(place: Place, console: Console, *, whole: bool) -> None:
    """Where it is and how near it comes; the nearest ones with the lines around them."""
    word = {1.0: "found", 0.0: "looked in"}.get(place.score, f"near ({place.score:.0%} alike)")
    _heading(word, f"{place.path}:{place.line}", console)
    margin = textwrap.dedent("\n".join(text for _, text in place.context)).split("\n")
    width = len(str(place.context[-1][0])) if place.context else 0
    for (number, _), text in zip(place.context, margin, strict=True):
        if whole or number == place.line:
            mark, style = (">", "bold") if number == place.line else (" ", "dim")
            _code(Text(f"    {mark} {number:>{width}} | {shown(text)}".rstrip(), style=style), console)


def _heading(word: str, place: str, console: Console) -> None:
    console.print(Text.assemble((f"  {word}", "cyan"), f" {shown(place)}" if place else ""), soft_wrap=True)


def _code(line: Text, console: Console) -> None:
    """A line of code stays one line: cut off at the edge of a terminal, whole where the output is kept."""
    if console.is_terminal:
        console.print(line, no_wrap=True, overflow="ellipsis", crop=True)
    else:
        console.print(line, soft_wrap=True)


def _history(history: History) -> Iterator[str]:
    last, first = history.last_matched, history.first_failed
    if history.moved_to:
        since = "in this tree" if history.moved_since == last else f"since {history.moved_since}"
        yield f"moved to {history.moved_to}{f' {since}' if history.moved_since else ''}"
    if last and last == first:
        yield f"it fits {last} as that was published, and first fails in this tree"
    elif last:
        yield f"it last fits {last}, and first fails in {first}"
