"""``insert_before``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from ddtree_patcher.codemods import Anchor, InsertBefore

from .laws import STYLES, Style, already, apply, refused, surroundings, touched

ADD = InsertBefore("f.py", Anchor("self.check()", scope="Args.__post_init__"), "if tree:\n    prepare(self, 'é')\n")
BEFORE = """\
class Args:
    def __post_init__(self):
        self.fill()  # é

        # Checks,
        # of all kinds.
        self.check()
        self.end()
"""
ADDED = "        if tree:\n            prepare(self, 'é')\n"
AFTER = BEFORE.replace("        # Checks", ADDED + "        # Checks")
IN_G = InsertBefore("f.py", Anchor("f(x)", scope="g"), "h()\n")


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_the_code_is_written_as_the_file_is(style: Style) -> None:
    assert apply(ADD, style(BEFORE)) == style(AFTER)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def g():\n    f(x)\n", "def g():\n    h()\n    f(x)\n"),
        ("def g():\n\n    f(x)\n", "def g():\n\n    h()\n    f(x)\n"),
        ("def g():\n    # c\n\n    f(x)\n", "def g():\n    # c\n\n    h()\n    f(x)\n"),
        ("def g():\n# left\n    f(x)\n", "def g():\n# left\n    h()\n    f(x)\n"),
        ("def g():\n    '''doc'''\n    f(x)\n", "def g():\n    '''doc'''\n    h()\n    f(x)\n"),
        (
            "def g():\n    with a:\n        f(\n            x,\n        )\n",
            "def g():\n    with a:\n        h()\n        f(\n            x,\n        )\n",
        ),
        (
            "def g():\n    if a: pass\n    # c\n    f(x)  # d\n",
            "def g():\n    if a: pass\n    h()\n    # c\n    f(x)  # d\n",
        ),
    ],
)
def test_before_the_statement_and_its_comment(before: str, after: str) -> None:
    assert apply(IN_G, before) == after


@pytest.mark.parametrize("quotes", ["'''", '"""'])
def test_a_line_of_a_string_is_no_comment(quotes: str) -> None:
    before = f"def g():\n    {quotes}\n    # not a comment{quotes}\n    f(x)\n"
    assert apply(IN_G, before) == before.replace("    f(x)", "    h()\n    f(x)")


def test_before_the_decorators() -> None:
    add = InsertBefore("f.py", Anchor("@one\n@two(...)\ndef k(): ..."), "h()\n")
    before = "x = 1\n# About k.\n@one\n# why\n@two(\n  1)\ndef k():\n    pass\n"
    assert apply(add, before) == before.replace("# About", "h()\n# About")


def test_the_first_line_of_a_file() -> None:
    add = InsertBefore("f.py", Anchor("x = 1"), "y = 2\n")
    assert apply(add, "\ufeffx = 1\n") == "\ufeffy = 2\nx = 1\n"
    assert apply(add, "x = 1") == "y = 2\nx = 1"


def test_deep_nesting() -> None:
    head = "def g():\n" + "".join("    " * level + "with a:\n" for level in range(1, 19))
    assert apply(IN_G, head + "    " * 19 + "f(x)\n") == head + "    " * 19 + "h()\n" + "    " * 19 + "f(x)\n"


def test_only_an_insertion() -> None:
    assert touched(ADD, BEFORE) == ("", ADDED)


def test_already_so() -> None:
    assert already(ADD, AFTER) == 5


@pytest.mark.parametrize(
    ("text", "outcome", "lines"),
    [
        ("def k():\n    f(x)\n", "anchor_missing", []),
        ("def g():\n    f(y)\n", "anchor_missing", [2]),
        ("def g(): f(x)\n", "anchor_missing", [1]),
        ("def g():\n    f(x); a\n", "anchor_missing", [2]),
        ("def g():\n    a; f(x)\n", "anchor_missing", [2]),
        ("def g():\n    while a: f(x)\n", "anchor_missing", [2]),
        ("def g():\n    f(x)\n    f(x)\n", "anchor_ambiguous", [2, 3]),
    ],
)
def test_refused_with_the_lines_that_came_near(text: str, outcome: str, lines: list[int]) -> None:
    assert refused(IN_G, text) == (outcome, lines)


def test_an_elif_has_no_line_of_its_own() -> None:
    add = InsertBefore("f.py", Anchor("if a: ...", scope="g"), "h()\n")
    assert refused(add, "def g():\n    if q:\n        1\n    elif a:\n        2\n") == ("anchor_missing", [4])


@settings(deadline=None, max_examples=30)
@given(surroundings())
def test_bytes_outside_the_place_are_equal(around: tuple[str, str, Style]) -> None:
    above, below, style = around
    assert apply(ADD, style(above + BEFORE + below)) == style(above + AFTER + below)
