"""What every codemod promises, checked each time that a test applies one; and the styles that files are written in."""

from __future__ import annotations

import re
from collections.abc import Callable

from hypothesis import strategies as st

from ddtree_patcher.codemods import AlreadySo, Codemod, Found, NotFound, Source, apply_splices

Style = Callable[[str], str]

_NEWLINE = re.compile(rb"\r\n|\r|\n")


def apply(codemod: Codemod, before: str) -> str:
    """The text with the codemod's change made; fails where one of the laws does not hold."""
    source = Source.parse(before.encode())
    found = codemod.locate(source)
    assert isinstance(found, Found), found
    splice = found.splice
    assert 0 <= splice.start <= splice.end <= len(source.data)
    assert 1 <= found.line <= source.line_count + 1
    after = apply_splices(source.data, [splice])
    changed = Source.parse(after)  # the result is Python
    assert isinstance(codemod.locate(changed), AlreadySo)
    assert set(_NEWLINE.findall(after)) <= {*_NEWLINE.findall(source.data), source.newline}
    assert _ends_in_newline(after) == _ends_in_newline(source.data)
    assert after.startswith(b"\xef\xbb\xbf") == source.data.startswith(b"\xef\xbb\xbf")
    return after.decode()


def touched(codemod: Codemod, before: str) -> tuple[str, str]:
    """The text that is replaced and the text that takes its place: nothing outside them changes."""
    source = Source.parse(before.encode())
    found = codemod.locate(source)
    assert isinstance(found, Found), found
    return source.data[found.splice.start : found.splice.end].decode(), found.splice.new.decode()


def already(codemod: Codemod, text: str) -> int:
    """The line where the code says it already."""
    there = codemod.locate(Source.parse(text.encode()))
    assert isinstance(there, AlreadySo), there
    return there.line


def refused(codemod: Codemod, text: str) -> tuple[str, list[int]]:
    """The outcome of a codemod that finds no place, and the lines of its candidates."""
    source = Source.parse(text.encode())
    answer = codemod.locate(source)
    assert isinstance(answer, NotFound), answer
    assert answer.wanted
    for candidate in answer.candidates:
        assert candidate.text == source.line(candidate.line).decode().strip()
        assert 0 <= candidate.score <= 1
    return str(answer.outcome), [candidate.line for candidate in answer.candidates]


def _ends_in_newline(data: bytes) -> bool:
    return data.endswith((b"\n", b"\r")) or not data.removeprefix(b"\xef\xbb\xbf")


def _tabs(text: str) -> str:
    return re.sub(r"(?m)^(?: {4})+", lambda margin: "\t" * (len(margin.group()) // 4), text)


def _two_spaces(text: str) -> str:
    return re.sub(r"(?m)^(?: {4})+", lambda margin: "  " * (len(margin.group()) // 4), text)


# A codemod that turns BEFORE into AFTER turns ``style(BEFORE)`` into ``style(AFTER)``.
STYLES: dict[str, Style] = {
    "plain": str,
    "windows": lambda text: text.replace("\n", "\r\n"),
    "byte-order-mark": lambda text: "\ufeff" + text,
    "tabs": _tabs,
    "two-spaces": _two_spaces,
    "no-final-newline": lambda text: text.removesuffix("\n"),
    "windows-tabs-no-final-newline": lambda text: _tabs(text).replace("\n", "\r\n").removesuffix("\r\n"),
    "form-feed-above": lambda text: f"one = 1\n\f\n{text}",
    "non-ascii-above": lambda text: f"# é 😀\none = 'é'; two = '😀'\n{text}",
    "coding-cookie": lambda text: f"# -*- coding: utf-8 -*-\n{text}",
}

# Code that may stand above or below the place: none of it names what the tests look for.
_NOISE = (
    "import os, sys  # é\n",
    "from q import (\n    r,  # one\n    s,\n)\n",
    "x1 = 'é'; x2 = \"😀\"   \n",
    '@dec\n@dec2(1,\n      2)\ndef f1(p, *, q="é"):\n    """é"""\n    return [p,\n            q]\n',
    "class N1:\n    z = 1\n\n    class N2: y = 2\n",
    "if x1: x2\nelif x2: pass\nelse:\n    pass\n",
    "text = '''\n  if 1:\n# no comment\n'''\n",
    "# a comment\n\n\f\n   \n",
    "long = 1 + \\\n    2\n",
    "async def f2():\n    async with a as b, c: await b\n",
    "match x1:\n    case [1, *_]: pass\n    case {'k': v}:\n        print(f'{v!r:>{x1}}')\n",
    "try:\n    pass\nexcept (A, B) as e:\n    raise\nfinally: pass\n",
)


@st.composite
def surroundings(draw: st.DrawFn) -> tuple[str, str, Style]:
    """Code above, code below, and a style for the whole."""
    above = "".join(draw(st.lists(st.sampled_from(_NOISE), max_size=3)))
    below = "".join(draw(st.lists(st.sampled_from(_NOISE), max_size=3)))
    return above, below, STYLES[draw(st.sampled_from(["plain", "windows", "byte-order-mark", "no-final-newline"]))]
