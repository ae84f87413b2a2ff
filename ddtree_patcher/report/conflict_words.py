"""What a conflict carries beside its summary, in words: what was expected, what came near, and since when."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from ..model import Diagnostic, History, Place

WHOLE = 2  # candidates that are shown with the code around them


def in_words(item: Diagnostic) -> Iterator[str]:
    """Lines of plain text; none for what is no conflict about a place."""
    if item.expected:
        yield "Expected:"
        yield from (f"    {line}" for line in item.expected.splitlines())
    for number, place in enumerate(item.candidates):
        yield f"{nearness(place).capitalize()}: {place.path}:{place.line}"
        yield from code_of(place, whole=number < WHOLE)
    if history := history_in_words(item.history):
        yield f"History: {history}"


def nearness(place: Place) -> str:
    """How near a candidate comes to what was wanted."""
    return {1.0: "found", 0.0: "looked in"}.get(place.score, f"near ({place.score:.0%} alike)")


def code_of(place: Place, *, whole: bool) -> Iterator[str]:
    """The numbered lines of a candidate, its own marked; that one alone unless the whole is wanted."""
    if not place.context:
        return
    lines = (
        " ".join(text.splitlines()) for _, text in place.context
    )  # a line of code is one; of a file, it may not be
    width = len(str(place.context[-1][0]))
    for (number, _), text in zip(place.context, textwrap.dedent("\n".join(lines)).split("\n"), strict=True):
        if whole or number == place.line:
            yield f"    {'>' if number == place.line else ' '} {number:>{width}} | {text}".rstrip()


def history_in_words(history: History) -> str:
    """Until when the place was there, and where it went; empty where nothing is known."""
    last, first, said = history.last_matched, history.first_failed, []
    if history.moved_to:
        since = "in this tree" if history.moved_since == last else f"since {history.moved_since}"
        said.append(f"moved to {history.moved_to}{f' {since}' if history.moved_since else ''}")
    if last and last == first:
        said.append(f"it fits {last} as that was published, and first fails in this tree")
    elif last:
        said.append(f"it last fits {last}, and first fails in {first}")
    return "; ".join(said)
