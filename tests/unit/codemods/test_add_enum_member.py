"""``add_enum_member``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from ddtree_patcher.codemods import AddEnumMember

from .laws import STYLES, Style, already, apply, refused, surroundings, touched

ADD = AddEnumMember("f.py", "Algorithm", "DDTREE", after="DFLASH")
BEFORE = """\
class Algorithm(Enum):
    DFLASH = auto()  # é, the "chain"
    NONE = auto()

    def is_none(self): return self == Algorithm.NONE
"""
AFTER = """\
class Algorithm(Enum):
    DFLASH = auto()  # é, the "chain"
    DDTREE = auto()
    NONE = auto()

    def is_none(self): return self == Algorithm.NONE
"""
LAST = "class Algorithm(Enum):\n    DFLASH = auto()\n"


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_the_member_is_written_as_the_file_is(style: Style) -> None:
    assert apply(ADD, style(BEFORE)) == style(AFTER)
    assert apply(ADD, style(LAST)) == style(LAST + "    DDTREE = auto()\n")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("auto()", "auto()"),
        ("enum.auto()   # why", "enum.auto()"),
        ("'dflash'", "'dflash'"),
        ('"é" + "😀"', '"é" + "😀"'),
        ("(1)", "(1)"),
        ("( 1, 'a' )", "( 1, 'a' )"),
        ("X = auto()", "auto()"),
        ("'''a\n  b'''", "'''a\n  b'''"),
    ],
)
def test_the_value_is_written_like_its_neighbours(value: str, written: str) -> None:
    before = f"class Algorithm:\n    DFLASH = {value}\n    NONE = 7\n"
    assert apply(ADD, before) == before.replace("    NONE", f"    DDTREE = {written}\n    NONE")


def test_a_value_over_several_lines_in_parentheses() -> None:
    before = "class Algorithm:\n    DFLASH = (\n        1 +\n        2\n    )\n"
    after = apply(ADD, before)
    assert after.startswith(before + "    DDTREE = (\n")


def test_the_class_may_lie_in_another_and_in_a_block() -> None:
    add = AddEnumMember("f.py", "Outer.Algorithm", "DDTREE", after="DFLASH")
    before = (
        "if x:\n    class Outer:\n        @dec\n        class Algorithm:\n            DFLASH = 1\n            b = 2\n"
    )
    after = before.replace("            b", "            DDTREE = 1\n            b")
    assert apply(add, before) == after


def test_only_an_insertion() -> None:
    assert touched(ADD, BEFORE) == ("", "    DDTREE = auto()\n")


def test_already_so() -> None:
    assert already(ADD, AFTER) == 3
    assert already(ADD, AFTER.replace("    NONE", "    DDTREE_V2 = 9\n    NONE")) == 3
    assert (
        already(ADD, "class Algorithm:\n    DDTREE = auto( )\n    DFLASH = auto()  # the order does not matter\n") == 2
    )


@pytest.mark.parametrize(
    ("text", "outcome", "lines"),
    [
        ("class Other:\n    DFLASH = 1\n", "anchor_missing", []),
        ("class Algorithms:\n    DFLASH = 1\n", "anchor_missing", [1]),
        ("class Outer:\n    class Algorithm:\n        DFLASH = 1\n", "anchor_missing", [2]),
        ("class Algorithm:\n    x = 1\n    D_FLASH = 1\n    DFLASHES = 1\n", "anchor_missing", [3, 4]),
        ("class Algorithm:\n    if x:\n        DFLASH = 1\n", "anchor_missing", []),
        ("class Algorithm:\n    DFLASH: int = 1\n", "anchor_missing", [2]),
        ("class Algorithm: DFLASH = 1\n", "anchor_missing", [1]),
        ("class Algorithm:\n    DFLASH = 1; NONE = 2\n", "anchor_missing", [2]),
        ("class Algorithm:\n    NONE = 2; DFLASH = 1\n", "anchor_missing", [2]),
        ("class Algorithm:\n    DFLASH = 1;\n", "anchor_missing", [2]),
        ("class Algorithm:\n    DFLASH = 1\n\nclass Algorithm:\n    DFLASH = 1\n", "anchor_ambiguous", [1, 4]),
        ("class Algorithm:\n    DFLASH = 1\n    DFLASH = 2\n", "anchor_ambiguous", [2, 3]),
        ("class Algorithm:\n    DFLASH = auto()\n    DDTREE = 7\n", "half_upstreamed", [3]),
        ("class Algorithm(IntEnum):\n    DFLASH = 1\n", "anchor_missing", [2]),
        ("class Algorithm(str, enum.Enum):\n    DFLASH = 'DFLASH'\n", "anchor_missing", [2]),
        ("class Algorithm:\n    DFLASH = auto()\n    DDTREE: int = auto()\n", "half_upstreamed", [3]),
    ],
)
def test_refused_with_the_lines_that_came_near(text: str, outcome: str, lines: list[int]) -> None:
    assert refused(ADD, text) == (outcome, lines)


def test_a_margin_with_a_form_feed() -> None:
    before = "class Algorithm:\n\f    DFLASH = 1\n    NONE = 2\n"
    assert apply(ADD, before) == before.replace("    NONE", "\f    DDTREE = 1\n    NONE")


@settings(deadline=None, max_examples=40)
@given(surroundings())
def test_bytes_outside_the_place_are_equal(around: tuple[str, str, Style]) -> None:
    above, below, style = around
    assert apply(ADD, style(above + BEFORE + below)) == style(above + AFTER + below)
