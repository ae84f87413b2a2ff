"""``replace_expression``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from ddtree_patcher.codemods import ReplaceExpression

from .laws import STYLES, Style, already, apply, refused, surroundings, touched

SWAP = ReplaceExpression("f.py", "g", "a == 1", "a in (1, 'é')")
BEFORE = '@dec\ndef g(a):\n    """é"""\n    return "é😀" if a == 1 else [  # all\n        2,\n    ]\n'
AFTER = BEFORE.replace("a == 1", "a in (1, 'é')")


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_the_rest_of_the_file_stays(style: Style) -> None:
    assert apply(SWAP, style(BEFORE)) == style(AFTER)


@pytest.mark.parametrize(
    "text",
    [
        "def g(): return a == 1\n",
        "def g():\n    q; return a == 1\n",
        "def g():\n    if q: pass\n    elif a == 1: pass\n",
        "def g():\n    while a == 1: pass\n",
        "def g(x=a == 1): pass\n",
        "@dec(a == 1)\ndef g(): pass\n",
        "async def g():\n    return await z(a == 1)\n",
        "def g():\n    return [q for q in z if a == 1]\n",
        "def g():\n    return lambda: a == 1\n",
        "def g():\n    def k():\n        return a == 1\n",
        "def g():\n    return \\\n        a == 1\n",
        "def g():\n    é = '😀'; return a == 1 or a == 2\n",
        "if y:\n    def g():\n        return a == 1\n",
    ],
)
def test_wherever_the_expression_stands(text: str) -> None:
    assert apply(SWAP, text) == text.replace("a == 1", "a in (1, 'é')")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x + (a == 1)", "x + (a in (1, 'é'))"),
        ("not(a == 1)", "not(a in (1, 'é'))"),
        ("((a == 1))", "((a in (1, 'é')))"),
        ("(\n        a  # é\n        == 1\n    )", "(\n        a in (1, 'é')\n    )"),
        ("(a  ==  1, 2)", "(a in (1, 'é'), 2)"),
    ],
)
def test_parentheses_stay(before: str, after: str) -> None:
    assert apply(SWAP, f"def g():\n    return {before}\n") == f"def g():\n    return {after}\n"


def test_the_pattern_may_leave_parts_open() -> None:
    swap = ReplaceExpression("f.py", "", "f(1, ...)", "f(2)")
    assert apply(swap, "y = f(1, b=3) + 1\n") == "y = f(2) + 1\n"


def test_only_what_differs_is_touched() -> None:
    assert touched(SWAP, "def g():\n    return a == 1 or b\n") == ("== 1", "in (1, 'é')")


def test_already_so() -> None:
    assert already(SWAP, AFTER) == 4
    assert already(SWAP, 'def g():\n    return a  in ( 1, "é", )\n') == 2


@pytest.mark.parametrize(
    ("text", "outcome", "lines"),
    [
        ("def k():\n    return a == 1\n", "anchor_missing", []),
        ("def g():\n    return a == 2\n", "anchor_missing", [2]),
        ("def g():\n    return a == 1 == b\n", "anchor_missing", [2]),
        ("def g():\n    return 'a == 1'  # a == 1\n", "anchor_missing", [1]),
        ("def g():\n    return (a == 1 or\n            a == 1)\n", "anchor_ambiguous", [2, 3]),
        ("def g(): ...\ndef g():\n    return a == 1\n", "anchor_ambiguous", [1, 2]),
    ],
)
def test_refused_with_the_lines_that_came_near(text: str, outcome: str, lines: list[int]) -> None:
    assert refused(SWAP, text) == (outcome, lines)


@settings(deadline=None, max_examples=30)
@given(surroundings())
def test_bytes_outside_the_place_are_equal(around: tuple[str, str, Style]) -> None:
    above, below, style = around
    assert apply(SWAP, style(above + BEFORE + below)) == style(above + AFTER + below)
