"""``insert_last``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from ddtree_patcher.codemods import InsertLast

from .laws import STYLES, Style, already, apply, refused, surroundings, touched

ADD = InsertLast("f.py", "Worker.start", "if tree:\n    grow('é')\n")
BEFORE = """\
class Worker:
    def start(self):
        with a, b:
            go()  # 😀

    def stop(self):
        pass
"""
ADDED = "        if tree:\n            grow('é')\n"
AFTER = BEFORE.replace("# 😀\n", "# 😀\n" + ADDED)


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_the_code_is_written_as_the_file_is(style: Style) -> None:
    assert apply(ADD, style(BEFORE)) == style(AFTER)
    short = BEFORE[: BEFORE.index("\n    def stop")]
    assert apply(ADD, style(short)) == style(short + ADDED)


@pytest.mark.parametrize(
    "body",
    [
        "        go()\n",
        '        """Only a docstring."""\n',
        "        if a:\n            go()\n        else:\n            stop()\n",
        "        def inner():\n            return 1\n",
        "        for a in b:\n            go(\n                a,\n            )\n",
    ],
)
def test_behind_the_whole_last_statement_at_the_margin_of_the_body(body: str) -> None:
    head = "class Worker:\n    def start(self):\n"
    assert apply(ADD, head + body) == head + body + ADDED


def test_nothing_but_the_place_is_touched() -> None:
    assert touched(ADD, BEFORE) == ("", ADDED)


def test_what_is_there_is_not_put_there_again() -> None:
    assert already(ADD, AFTER) == 5


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("class Worker:\n    def begin(self):\n        go()\n", "anchor_missing"),
        ("def start(self):\n    go()\n", "anchor_missing"),
        (BEFORE + BEFORE, "anchor_ambiguous"),
        ("class Worker:\n    def start(self): go()\n", "anchor_missing"),
        ("class Worker:\n    def start(self):\n        if a:\n            return\n        go()\n", "anchor_missing"),
    ],
)
def test_where_it_has_no_place(text: str, outcome: str) -> None:
    found, _ = refused(ADD, text)
    assert found == outcome


@given(surroundings())
@settings(deadline=None, max_examples=50)
def test_whatever_stands_around_it(around: tuple[str, str, Style]) -> None:
    above, below, style = around
    assert apply(ADD, style(above + BEFORE + below)) == style(above + AFTER + below)
