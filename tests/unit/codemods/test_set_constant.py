"""``set_constant``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from ddtree_patcher.codemods import SetConstant, Source
from ddtree_patcher.errors import SourceError

from .laws import STYLES, Style, already, apply, refused, surroundings, touched

SET = SetConstant("f.py", "LIMIT_S", "480", "1800")
BEFORE = "é = '😀'\nLIMIT_S = 480  # é: more time\n\n\ndef f():\n    return g(480, LIMIT_S)\n"
AFTER = BEFORE.replace("= 480", "= 1800")


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_the_rest_of_the_file_stays(style: Style) -> None:
    assert apply(SET, style(BEFORE)) == style(AFTER)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("LIMIT_S: int = 480\n", "LIMIT_S: int = 1800\n"),
        ("LIMIT_S: int\nLIMIT_S = 480\n", "LIMIT_S: int\nLIMIT_S = 1800\n"),
        ("LIMIT_S = (\n    480  # a\n)\n", "LIMIT_S = (\n    1800  # a\n)\n"),
        ("LIMIT_S=4_80\n", "LIMIT_S=1800\n"),
        ("if x:\n    LIMIT_S = 480\n", "if x:\n    LIMIT_S = 1800\n"),
        ("LIMIT_S = 480\nOTHER = 1800\nother = LIMIT_S = 1\n", "LIMIT_S = 1800\nOTHER = 1800\nother = LIMIT_S = 1\n"),
    ],
)
def test_every_way_to_assign(before: str, after: str) -> None:
    assert apply(SET, before) == after


def test_in_a_class_and_any_old_value() -> None:
    edit = SetConstant("f.py", "size", "...", "f(2)", scope="A.B")
    before = "class A:\n    size = 0\n\n    class B:\n        size = 1 + x\n"
    assert apply(edit, before) == before.replace("1 + x", "f(2)")
    assert edit.symbols() == ("A.B.size",)


def test_only_the_value_is_touched() -> None:
    assert touched(SET, BEFORE) == ("48", "180")  # the last digit is the same


def test_already_so() -> None:
    assert already(SET, AFTER) == 2


@pytest.mark.parametrize(
    ("text", "outcome", "lines"),
    [
        ("x = 480\n", "anchor_missing", []),
        ("y = 1\nLIMIT = 480\n", "anchor_missing", [2]),
        ("LIMIT_S = 600\n", "anchor_missing", [1]),
        ('LIMIT_S = "480"\n', "anchor_missing", [1]),
        ("LIMIT_S = 480.0\n", "anchor_missing", [1]),
        ("LIMIT_S: int\n", "anchor_missing", [1]),
        ("if x:\n    LIMIT_S = 480\nelse:\n    LIMIT_S = 1800\n", "anchor_ambiguous", [2, 4]),
    ],
)
def test_refused_with_the_lines_that_came_near(text: str, outcome: str, lines: list[int]) -> None:
    assert refused(SET, text) == (outcome, lines)


def test_a_scope_that_is_not_there() -> None:
    assert refused(SetConstant("f.py", "x", "1", "2", scope="A"), "class B:\n    x = 1\n")[0] == "anchor_missing"


def test_a_statement_that_shares_its_line_is_refused() -> None:
    with pytest.raises(SourceError, match="share lines"):
        SET.locate(Source.parse(b"LIMIT_S = 480; y = 1\n"))


@settings(deadline=None, max_examples=20)
@given(surroundings())
def test_bytes_outside_the_place_are_equal(around: tuple[str, str, Style]) -> None:
    above, below, style = around
    assert apply(SET, style(above + BEFORE + below)) == style(above + AFTER + below)
