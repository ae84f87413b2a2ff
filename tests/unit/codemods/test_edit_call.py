"""``edit_call``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from ddtree_patcher.codemods import EditCall

from .laws import STYLES, Style, already, apply, refused, surroundings, touched

ADD = EditCall("f.py", "g", "make(...)", "b", new="f(2)")
CHANGE = EditCall("f.py", "g", "make(...)", "b", old="x", new="y or z")
DROP = EditCall("f.py", "g", "make(...)", "b", old="x")
BEFORE = """\
def g(self):
    self.made = make(
        a,  # é
        b=x,
        c=3,  # three
    )
    other(b=x)
"""
DROPPED = BEFORE.replace("        b=x,\n", "")


def in_g(call: str) -> str:
    return f"def g():\n    return {call}  # end\n"


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_added_as_the_file_is_written(style: Style) -> None:
    after = DROPPED.replace("c=3,  # three\n", "c=3,  # three\n        b=f(2),\n")
    assert apply(ADD, style(DROPPED)) == style(after)


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_changed_and_the_rest_of_the_file_stays(style: Style) -> None:
    assert apply(CHANGE, style(BEFORE)) == style(BEFORE.replace("b=x,\n", "b=y or z,\n"))


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_dropped_and_the_rest_of_the_file_stays(style: Style) -> None:
    assert apply(DROP, style(BEFORE)) == style(DROPPED)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("make()", "make(b=f(2))"),
        ("make(1)", "make(1, b=f(2))"),
        ("make(1,)", "make(1, b=f(2),)"),
        ("make( 1 ,c=2 )", "make( 1 ,c=2,b=f(2) )"),
        ("make(*a, c = 2)", "make(*a, c = 2, b=f(2))"),
        ("make(\n        1\n    )", "make(\n        1,\n        b=f(2)\n    )"),
        ("make(\n        1,\n        2,  # two\n    )", "make(\n        1,\n        2,  # two\n        b=f(2),\n    )"),
        ("make(1,\n         c=2)", "make(1,\n         c=2,\n         b=f(2))"),
    ],
)
def test_added_as_the_last_one(before: str, after: str) -> None:
    assert apply(ADD, in_g(before)) == in_g(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("make(b=x)", "make()"),
        ("make(b = x,)", "make()"),
        ("make(1, b=x)", "make(1)"),
        ("make(1, b=x,)", "make(1,)"),
        ("make(b=x, c=2)", "make(c=2)"),
        ("make(1, b=x, c=2)", "make(1, c=2)"),
        ("make(\n        1, b=x,\n        c=2)", "make(\n        1,\n        c=2)"),
        ("make(\n        b=x, c=2)", "make(\n        c=2)"),
        ("make(1,\n         b=x)", "make(1)"),
        ("make(1,  # one\n         b=x)", "make(1  # one\n         )"),
        (
            "make(\n        1,  # one\n        # about b\n        b=x,  # b\n        # about c\n        c=2,\n    )",
            "make(\n        1,  # one\n        # about c\n        c=2,\n    )",
        ),
        ("make(\n        1,  # one\n        b=x,  # b\n    )", "make(\n        1,  # one\n    )"),
        ("make(\n        1,\n        b=x\n    )", "make(\n        1\n    )"),
    ],
)
def test_dropped_with_the_comments_that_are_about_it(before: str, after: str) -> None:
    assert apply(DROP, in_g(before)) == in_g(after)


def test_parentheses_of_a_value_stay() -> None:
    assert apply(CHANGE, in_g("make(b=(x), c=x)")) == in_g("make(b=(y or z), c=x)")


def test_any_old_value() -> None:
    edit = EditCall("f.py", "", "a.make(1, ...)", "b", old="...", new="None")
    assert apply(edit, "z = a.make(1, b=[x for x in y])\n") == "z = a.make(1, b=None)\n"


def test_only_what_differs_is_touched() -> None:
    assert touched(CHANGE, BEFORE) == ("x", "y or z")
    assert len(touched(DROP, BEFORE)[0]) == len("        b=x,\n") and touched(DROP, BEFORE)[1] == ""


@pytest.mark.parametrize(
    ("edit", "call"),
    [(ADD, "make(1, b=f( 2 ))"), (CHANGE, "make(b=y or z)"), (DROP, "make(x)"), (DROP, "make(**b)")],
)
def test_already_so(edit: EditCall, call: str) -> None:
    assert already(edit, in_g(call)) == 2


@pytest.mark.parametrize(
    ("edit", "text", "outcome", "lines"),
    [
        (ADD, in_g("mace(1)"), "anchor_missing", [2]),
        (ADD, "def h():\n    make()\n", "anchor_missing", []),
        (ADD, in_g("make(b=f(3))"), "half_upstreamed", [2]),
        (ADD, in_g("make(1, **more)"), "anchor_missing", [2]),
        (ADD, in_g("make(1) + make(2)"), "anchor_ambiguous", [2, 2]),
        (CHANGE, in_g("make(1)"), "anchor_missing", [2]),
        (CHANGE, in_g("make(b=q)"), "anchor_missing", [2]),
        (DROP, in_g("make(b=q)"), "anchor_missing", [2]),
        (DROP, in_g("make(b=x.y)"), "anchor_missing", [2]),
    ],
)
def test_refused_with_the_lines_that_came_near(edit: EditCall, text: str, outcome: str, lines: list[int]) -> None:
    assert refused(edit, text) == (outcome, lines)


def test_an_edit_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="neither"):
        EditCall("f.py", "g", "make(...)", "b")


@settings(deadline=None, max_examples=20)
@given(surroundings())
def test_bytes_outside_the_place_are_equal(around: tuple[str, str, Style]) -> None:
    above, below, style = around
    assert apply(DROP, style(above + BEFORE + below)) == style(above + DROPPED + below)
