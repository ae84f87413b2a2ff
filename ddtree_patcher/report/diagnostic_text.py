"""A diagnostic for people: what is wrong and where, what was expected, what came near, since when, and what to do."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ..model import Diagnostic, Place
from .conflict_words import WHOLE, code_of, history_in_words, nearness
from .tables import say

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
        _candidate(candidate, console, whole=number < WHOLE)
    for line in shown(item.detail).splitlines():
        say(console, Text(line.lstrip()), 2 + len(line) - len(line.lstrip()))
    if history := history_in_words(item.history):
        say(console, Text.assemble(("history: ", "cyan"), shown(history)), 2)
    if item.remedy:
        say(console, Text.assemble(("remedy: ", "green"), shown(item.remedy)), 2)


def shown(text: str) -> str:
    """Text of unknown origin (a path, a line of code) that tells a terminal nothing: control characters as escapes."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else ascii(letter)[1:-1] for letter in text)


def _candidate(place: Place, console: Console, *, whole: bool) -> None:
    """Where it is and how near it comes; the nearest ones with the lines around them."""
    _heading(nearness(place), f"{place.path}:{place.line}", console)
    for line in code_of(place, whole=whole):
        _code(Text(shown(line), style="bold" if line.lstrip().startswith(">") else "dim"), console)


def _heading(word: str, place: str, console: Console) -> None:
    console.print(Text.assemble((f"  {word}", "cyan"), f" {shown(place)}" if place else ""), soft_wrap=True)


def _code(line: Text, console: Console) -> None:
    """A line of code stays one line: cut off at the edge of a terminal, whole where the output is kept."""
    if console.is_terminal:
        console.print(line, no_wrap=True, overflow="ellipsis", crop=True)
    else:
        console.print(line, soft_wrap=True)
