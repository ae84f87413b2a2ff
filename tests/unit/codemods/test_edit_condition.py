"""``edit_condition``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from ddtree_patcher.codemods import EditCondition

from .laws import STYLES, Style, already, apply, refused, surroundings, touched

EDIT = EditCondition("f.py", "g", 'a == "A"', 'a in ("A", "B")')
BEFORE = 'def g(self):\n    if b:\n        c = a == "A"  # é\n    elif a == \'A\':   # "é"\n        return a == "A"\n'
AFTER = BEFORE.replace("elif a == 'A'", 'elif a in ("A", "B")')


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_the_rest_of_the_file_stays(style: Style) -> None:
    assert apply(EDIT, style(BEFORE)) == style(AFTER)


@pytest.mark.parametrize(
    "text",
    [
        "def g():\n    if CONDITION:\n        pass\n",
        "def g():\n    if CONDITION: pass\n    else: pass\n",
        "def g():\n    while CONDITION:\n        pass\n",
        "def g():\n    assert CONDITION, 'é'\n",
        "def g():\n    é = '😀'; x = 1 if CONDITION else 2\n",
        "def g():\n    if (CONDITION):\n        pass\n",
        "def g():\n    if(CONDITION):\n        pass\n",
        "def g():\n    if x:\n        pass\n    else:\n        if CONDITION:\n            pass\n",
        "async def g():\n    async for x in y:\n        if CONDITION: continue\n",
        "def g():\n    if \\\n        CONDITION:\n        pass\n",
    ],
)
def test_every_kind_of_condition(text: str) -> None:
    assert apply(EDIT, text.replace("CONDITION", 'a == "A"')) == text.replace("CONDITION", 'a in ("A", "B")')


def test_only_what_differs_is_touched() -> None:
    assert touched(EDIT, BEFORE) == ("== 'A'", 'in ("A", "B")')


def test_already_so() -> None:
    assert already(EDIT, AFTER) == 4


@pytest.mark.parametrize(
    ("text", "outcome", "lines"),
    [
        ('if a == "A": pass\n', "anchor_missing", []),
        ('def g():\n    return a == "A"\n', "anchor_missing", [2]),
        ('def g():\n    if a == "A" and b:\n        pass\n', "anchor_missing", [2]),
        ('def g():\n    if not a == "A":\n        pass\n', "anchor_missing", [2]),
        ('def g():\n    return [x for x in y if a == "A"]\n', "anchor_missing", [2]),
        ('def g():\n    if a == "B":\n        pass\n', "anchor_missing", [2]),
        ('def g():\n    if a == "A":\n        pass\n    while a == "A":\n        pass\n', "anchor_ambiguous", [2, 4]),
    ],
)
def test_refused_with_the_lines_that_came_near(text: str, outcome: str, lines: list[int]) -> None:
    assert refused(EDIT, text) == (outcome, lines)


@settings(deadline=None, max_examples=30)
@given(surroundings())
def test_bytes_outside_the_place_are_equal(around: tuple[str, str, Style]) -> None:
    above, below, style = around
    assert apply(EDIT, style(above + BEFORE + below)) == style(above + AFTER + below)
