"""The words of docs/statuses.md with what it says of each, for formats that carry help beside their findings."""

from __future__ import annotations

import re
from collections.abc import Mapping

_HEADING = re.compile(r"^(#+) +(.*?) *$", re.M)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def statuses_in(text: str) -> Mapping[str, str]:
    """Word → its section as Markdown, without the heading and with links as their text alone."""
    parts = _HEADING.split(text)
    found = zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
    return {word: _LINK.sub(r"\1", body).strip() for level, word, body in found if level == "##"}
