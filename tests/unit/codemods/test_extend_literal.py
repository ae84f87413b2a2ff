"""``extend_literal``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from ddtree_patcher.codemods import Anchor, ExtendLiteral, Source
from ddtree_patcher.errors import SourceError

from .laws import STYLES, Style, already, apply, refused, surroundings, touched

ADD = ExtendLiteral("f.py", Anchor("x = ..."), '"B"', beside='"A"')
BEFORE = """\
def options(parser):
    parser.add_argument(
        "--algorithm",  # é
        choices=["é", "A", 'C'],  # all
    )
"""
AFTER = BEFORE.replace('"A", ', '"A", "B", ')
IN_CALL = ExtendLiteral("f.py", Anchor('parser.add_argument("--algorithm", ...)', scope="options"), '"B"', beside='"A"')


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_the_element_is_written_as_the_file_is(style: Style) -> None:
    assert apply(IN_CALL, style(BEFORE)) == style(AFTER)


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_one_element_a_line(style: Style) -> None:
    before = 'if y:\n    x = {\n        "C",  # é\n        "A",\n    }\n'
    assert apply(ADD, style(before)) == style(before.replace('"A",\n', '"A",\n        "B",\n'))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('["A", "C"]', '["A", "B", "C"]'),
        ("['C', 'A']", "['C', 'A', \"B\"]"),
        ('["A"]', '["A", "B"]'),
        ('["A",]', '["A", "B",]'),
        ('[ "A" ,"C" ]', '[ "A" ,"B" ,"C" ]'),
        ('["C" , "A"]', '["C" , "A" , "B"]'),
        ('("A",)', '("A", "B",)'),
        ('("A", "C")', '("A", "B", "C")'),
        ('"A", "C"', '"A", "B", "C"'),
        ('"A",', '"A", "B",'),
        ('{"A"}', '{"A", "B"}'),
        ('["é", "😀", "A", "C"]', '["é", "😀", "A", "B", "C"]'),
        ('["A", *rest]', '["A", "B", *rest]'),
        ('(("A"), "C")', '(("A"), "B", "C")'),
        ('["A", "A"]', '["A", "B", "A"]'),
        ('[["A"], 1]', '[["A", "B"], 1]'),
        ('f(["A"], {"A": 1}, Literal["A"], "A")', 'f(["A", "B"], {"A": 1}, Literal["A"], "A")'),
        ('[y for y in ("A", "C")]', '[y for y in ("A", "B", "C")]'),
        ('frozenset(\n    {"A", "C"}\n)', 'frozenset(\n    {"A", "B", "C"}\n)'),
        ('["A" "", "C"]', '["A" "", "B", "C"]'),
    ],
)
def test_behind_its_neighbour_on_one_line(before: str, after: str) -> None:
    assert apply(ADD, f"x = {before}  # end\n") == f"x = {after}  # end\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('[\n    "A",  # a\n    "C",  # c\n]', '[\n    "A",  # a\n    "B",\n    "C",  # c\n]'),
        ('[\n    "C",\n    "A",  # a\n]', '[\n    "C",\n    "A",  # a\n    "B",\n]'),
        ('{\n    "C",  # c\n    "A"  # a\n}', '{\n    "C",  # c\n    "A",  # a\n    "B"\n}'),
        ('(\n    "A",  # a\n)', '(\n    "A",  # a\n    "B",\n)'),
        ('[\n    "A"\n]', '[\n    "A",\n    "B"\n]'),
        (
            '[\n    # group\n    "A",\n    # others\n    "C",\n]',
            '[\n    # group\n    "A",\n    "B",\n    # others\n    "C",\n]',
        ),
        ('[\n    "C",\n    "A",\n    # end\n]', '[\n    "C",\n    "A",\n    "B",\n    # end\n]'),
        ('[\n    "A", "C",\n]', '[\n    "A", "B", "C",\n]'),
        ('[\n    "C", "A",  # a\n]', '[\n    "C", "A", "B",  # a\n]'),
        ('[ "A"\n    , "C"\n    ]', '[ "A"\n    , "B"\n    , "C"\n    ]'),
        ('["A",\n     "C"]', '["A",\n     "B",\n     "C"]'),
        ('["C",\n     "A"]', '["C",\n     "A",\n     "B"]'),
    ],
)
def test_behind_its_neighbour_with_every_comment_in_its_place(before: str, after: str) -> None:
    assert apply(ADD, f"x = {before}\n") == f"x = {after}\n"


def test_only_what_is_new_is_touched() -> None:
    assert touched(ADD, 'x = ["é", "A", "C"]\n') == ("", 'B", "')


@pytest.mark.parametrize(
    ("text", "line"), [('x = ["A", "B"]\n', 1), ("x = [\n'B',\n'Q', 'A']\n", 2), ('x = ["B", "A", "B"]\n', 1)]
)
def test_already_so(text: str, line: int) -> None:
    assert already(ADD, text) == line


@pytest.mark.parametrize(
    ("text", "outcome", "lines"),
    [
        ("y = ['A']\n", "anchor_missing", [1]),
        ("x = [1]\n", "anchor_missing", [1]),
        ("x = 'A'\n", "anchor_missing", [1]),
        ("x = []\n", "anchor_missing", [1]),
        ("x = Literal['A', 'C']\n", "anchor_missing", [1]),
        ("x = f('A')\n", "anchor_missing", [1]),
        ("x = [\n  ['A'],\n  ['A'],\n]\n", "anchor_ambiguous", [2, 3]),
        ("x = ['A']\nx = ['A']\n", "anchor_ambiguous", [1, 2]),
    ],
)
def test_refused_with_the_lines_that_came_near(text: str, outcome: str, lines: list[int]) -> None:
    assert refused(ADD, text) == (outcome, lines)


def test_literals_of_statements_inside_do_not_count() -> None:
    add = ExtendLiteral("f.py", Anchor("if x not in ...: ..."), '"B"', beside='"A"')
    before = "if x not in ('A', 'C'):\n    y = ['A']\n"
    assert apply(add, before) == before.replace("('A',", "('A', \"B\",")


@pytest.mark.parametrize("text", ["x = ['A']; y = 1\n", "y = 1; x = ['A']\n"])
def test_a_statement_that_shares_its_line_is_refused(text: str) -> None:
    with pytest.raises(SourceError, match="share lines"):
        ADD.locate(Source.parse(text.encode()))


@settings(deadline=None, max_examples=30)
@given(surroundings())
def test_bytes_outside_the_place_are_equal(around: tuple[str, str, Style]) -> None:
    above, below, style = around
    assert apply(IN_CALL, style(above + BEFORE + below)) == style(above + AFTER + below)
