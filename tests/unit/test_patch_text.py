"""A diff on paper is the diff; on a terminal it has colours that any theme can show."""

from __future__ import annotations

import difflib
import io
import re

import pytest
from rich.console import Console
from rich.style import Style
from rich.text import Text

from ddtree_patcher.operations import planning
from ddtree_patcher.report import patch_text

ANSI_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
BEFORE = '''\
import os


class Worker:
    """A worker."""

    @property
    def width(self) -> int:
        # one
        return 1 if self.wide is None else "two"
-- not Python
'''
AFTER = BEFORE.replace("return 1", "return 16").replace("-- not Python\n", "")


def unified(before: str, after: str, path: str = "pkg/a.py", context: int = 3) -> str:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{path}", f"b/{path}", n=context
    )
    return "".join(lines)


def drawn(text: str, *, terminal: bool = True, colour: bool = True) -> str:
    stream = io.StringIO()
    system = "standard" if colour else None
    patch_text.draw(text, Console(file=stream, width=40, force_terminal=terminal, color_system=system))
    return stream.getvalue()


def styles(text: str) -> dict[str, str]:
    """Piece of text -> the style that it has in the drawing."""
    found: dict[str, str] = {}
    for line in drawn(text).splitlines():
        read = Text.from_ansi(line)
        for span in read.spans:
            assert isinstance(span.style, Style)
            found[read.plain[span.start : span.end].strip()] = name(span.style)
    return found


def name(style: Style) -> str:
    """``bold green`` of what was read from escape codes."""
    colour = ANSI_NAMES[style.color.number] if style.color and style.color.number is not None else ""
    return " ".join(filter(None, ["bold" if style.bold else "", "dim" if style.dim else "", colour]))


DIFF = unified(BEFORE, AFTER)


@pytest.mark.parametrize(
    "text", [DIFF, "--- a\n+++ b\n@@ -1 +1 @@\n-\x1b[1m\tx\x0c\r\n+é\n\\ No newline at end of file\n"]
)
def test_into_a_pipe_not_a_byte_is_changed(text: str) -> None:
    assert drawn(text, terminal=False, colour=False) == text


def test_colours_change_no_letter_and_break_no_line() -> None:
    long = unified("x = 1\n", f"x = {'1 + ' * 40}1\n")
    for text in (DIFF, long):
        assert [Text.from_ansi(line).plain for line in drawn(text).splitlines()] == text.splitlines()


def test_python_is_read_on_both_sides() -> None:
    found = styles(unified(BEFORE, AFTER, context=20))
    assert (found["+"], found["-"]) == ("bold green", "bold red")
    assert {found[word] for word in ("class", "def", "return", "if", "import")} == {"magenta"}
    assert {found[word] for word in ("1", "16", '"""A worker."""', "two", "None")} == {"cyan"}
    assert {found[word] for word in ("Worker", "width", "@property")} == {"bold"}
    assert found["# one"] == "dim"
    assert found["--- a/pkg/a.py"] == "bold"


def test_a_removed_line_that_looks_like_a_heading_is_a_removed_line() -> None:
    assert "--- not Python" in DIFF.splitlines()
    assert styles(unified(BEFORE, AFTER, "notes.txt"))["-- not Python"] == "red"


def test_what_is_no_python_has_the_colour_of_its_side_alone() -> None:
    found = styles(unified("def a\n", "def b\n", "notes.txt"))
    assert (found["def a"], found["def b"]) == ("red", "green")


@pytest.mark.parametrize(
    ("above", "inside"),
    [
        (["    text", '    """', "    x = None"], True),
        (['    ends here."""', "    x = None"], True),
        (["    def f():", '        """', "        text"], False),
        (['    """Text that goes on', "    below."], False),
        (['    x = """', "    below."], False),
        (['    """Whole."""', "    x = None"], False),
    ],
)
def test_a_hunk_that_begins_inside_a_string(above: list[str], inside: bool) -> None:
    assert patch_text._begins_inside_a_string(above) is inside
    if inside:
        found = styles(unified("\n".join([*above, ""]), "\n".join([*above, "y = 2", ""])))
        assert found["None"] == "cyan" and "x =" not in found


def test_only_the_colours_that_a_theme_redefines() -> None:
    """No background, no colour by number: what is readable stays readable on dark and on light."""
    for codes in re.findall(r"\x1b\[([\d;]*)m", drawn(unified(BEFORE, AFTER, context=20))):
        for code in map(int, filter(None, codes.split(";"))):
            assert code in (0, 1, 2, 31, 32, 35, 36)


@pytest.mark.parametrize("colour", [True, False])
def test_a_terminal_is_told_nothing_by_the_code(colour: bool) -> None:
    text = unified("x = 1\n", "x = '\x1b]0;title\x07'\n")
    assert "\x1b]" not in drawn(text, colour=colour) and "\x07" not in drawn(text, colour=colour)
    assert r"\x1b]0;title\x07" in re.sub(r"\x1b\[[\d;]*m", "", drawn(text, colour=colour))


def test_a_line_ends_where_patch_ends_it() -> None:
    """Python would end one at a form feed too, and a diff of that is none."""
    assert planning._lines(b"a\x0cb\r\nc\rd\n\xc2\x85e") == ["a\x0cb\r\n", "c\rd\n", "\x85e"]
