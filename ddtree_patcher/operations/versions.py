"""Which releases a command line means: single versions, and ranges over the releases that are known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from packaging.version import InvalidVersion, Version

from ..errors import UsageError

_BETWEEN = ("…", "...", "..", "-")  # words of their own: 0.5.11 … 0.5.23
_INSIDE = re.compile(r"\s*(?:…|\.{2,3}(?!\.))\s*")  # or inside one: 0.5.11...0.5.23
_REMEDY = "Name releases (0.5.12.post1) and ranges (0.5.11 … 0.5.23, or 0.5.11...0.5.23)."


def releases_meant(words: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Every version that is named, and the known ones between the ends of each range; oldest first, each once.

    Without words, the known ones. Raises ``UsageError`` for what is no version, a range without two ends, or one that
    runs backwards.
    """
    if not words:
        return tuple(known)
    available = [Version(version) for version in known]
    meant: set[Version] = set()
    for first, last in _ranges(list(_split(words))):
        if last < first:
            raise UsageError(f"the range {first} … {last} runs backwards", remedy=_REMEDY)
        meant |= {first, last, *(version for version in available if first <= version <= last)}
    return tuple(str(version) for version in sorted(meant))


def _split(words: Sequence[str]) -> Iterator[str]:
    """``a...b`` as the three words that it stands for."""
    for word in words:
        ends = [word] if word in _BETWEEN else _INSIDE.split(word)
        for place, end in enumerate(ends):
            if place:
                yield _BETWEEN[0]
            yield end


def _ranges(words: Sequence[str]) -> Iterator[tuple[Version, Version]]:
    """Each version as a range of its own, unless it is the end of one."""
    place = 0
    while place < len(words):
        first = last = _version(words[place])
        if place + 1 < len(words) and words[place + 1] in _BETWEEN:
            if place + 2 == len(words):
                raise UsageError(f"the range {first} … has no end", remedy=_REMEDY)
            last = _version(words[place + 2])
            place += 2
        yield first, last
        place += 1


def _version(word: str) -> Version:
    try:
        return Version(word)
    except InvalidVersion as error:
        raise UsageError(f"{word!r} is no version", remedy=_REMEDY) from error
