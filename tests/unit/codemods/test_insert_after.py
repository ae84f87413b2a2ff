"""``insert_after``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from ddtree_patcher.codemods import Anchor, InsertAfter

from .laws import STYLES, Style, already, apply, refused, surroundings, touched

CODE = "if tree:\n    grow('é')\n"
ADD = InsertAfter("f.py", Anchor("self.args = args", scope="Worker.__init__"), CODE)
BEFORE = """\
class Worker:
    def __init__(self, args):
        x = "é"
        self.args = args  # 😀
        # Then:
        self.device = 1
"""
ADDED = "        if tree:\n            grow('é')\n"
AFTER = BEFORE.replace("        # Then", ADDED + "        # Then")
IN_G = InsertAfter("f.py", Anchor("f(x)", scope="g"), "h()\n")


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_the_code_is_written_as_the_file_is(style: Style) -> None:
    assert apply(ADD, style(BEFORE)) == style(AFTER)
    short = BEFORE[: BEFORE.index("        # Then")]
    assert apply(ADD, style(short)) == style(short + ADDED)


@pytest.mark.parametrize(
    ("before", "margin"),
    [
        ("def g():\n    with a:\n        f(x)\n", 8),
        ("def g():\n    def k():\n        f(x)\n", 8),
        ("async def g():\n    async with a: \n        f(x)\n", 8),
        ("@dec\ndef g():\n    f(  x  )\n", 4),
        ("def g():\n    f(\n        x,  # one\n    )\n", 4),
        ("def g(\n    a,\n):\n    '''doc'''\n    f(x)\n", 4),
        ("if y:\n    def g():\n        f(x)\n", 8),
    ],
)
def test_in_the_block_of_its_place(before: str, margin: int) -> None:
    assert apply(IN_G, before) == before + " " * margin + "h()\n"
    assert apply(IN_G, before + "z = 1\n") == before + " " * margin + "h()\n" + "z = 1\n"


@pytest.mark.parametrize(
    "before",
    [
        "def g():\n    if a:\n        f(x)\n",
        "def g():\n    if a:\n        pass\n    elif b:\n        f(x)\n",
        "def g():\n    for a in b:\n        pass\n    else:\n        f(x)\n",
        "def g():\n    try:\n        pass\n    except E:\n        f(x)\n",
        "def g():\n    try:\n        pass\n    finally:\n        f(x)\n",
        "def g():\n    match a:\n        case 1:\n            f(x)\n",
        "def g():\n    while a:\n        with b:\n            f(x)\n",
    ],
)
def test_not_where_something_decides_on_the_statement(before: str) -> None:
    assert refused(IN_G, before) == ("anchor_missing", [before.count("\n")])


@pytest.mark.parametrize("header", ["if a:", "for a in b:", "while a:"])
def test_directly_inside_of_what_the_anchor_names(header: str) -> None:
    inside = InsertAfter("f.py", Anchor("f(x)", scope="g", within=f"{header} ..."), "h()\n")
    before = f"def g():\n    {header}\n        f(x)\n"
    assert apply(inside, before) == before + "        h()\n"
    deeper = f"def g():\n    {header}\n        if z:\n            f(x)\n"
    assert refused(inside, deeper) == ("anchor_missing", [4])


def test_behind_a_whole_chain_of_elifs() -> None:
    add = InsertAfter("f.py", Anchor("if a: ...", scope="g"), "h()\n")
    before = "def g():\n    if a:\n        1\n    elif b:\n        2\n    else:\n        3\n    # then\n    z\n"
    assert apply(add, before) == before.replace("    # then", "    h()\n    # then")


def test_within_a_block() -> None:
    before = "def g():\n    if a:\n        f(x)\n    if b:\n        f(x)\n"
    within = InsertAfter("f.py", Anchor("f(x)", scope="g", within="if b: ..."), "h()\n")
    assert apply(within, before) == before + "        h()\n"
    assert refused(IN_G, before) == ("anchor_ambiguous", [3, 5])
    nowhere = InsertAfter("f.py", Anchor("f(x)", scope="g", within="if c: ..."), "h()\n")
    assert refused(nowhere, before) == ("anchor_missing", [2, 4])


def test_several_statements_with_comments_and_blank_lines() -> None:
    add = InsertAfter("f.py", Anchor("x = 1"), "# one\na = 1\n\n# two\nb = 2\n")
    assert apply(add, "x = 1\ny = 2\n") == "x = 1\n# one\na = 1\n\n# two\nb = 2\ny = 2\n"


def test_deep_nesting() -> None:
    head = "def g():\n" + "".join("    " * level + "with a:\n" for level in range(1, 19))
    assert apply(IN_G, head + "    " * 19 + "f(x)\n") == head + "    " * 19 + "f(x)\n" + "    " * 19 + "h()\n"


def test_only_an_insertion() -> None:
    assert touched(ADD, BEFORE) == ("", ADDED)


def test_already_so_anywhere_in_the_scope() -> None:
    assert already(ADD, AFTER) == 5
    assert already(IN_G, "def g():\n    if a:\n        h( )\n") == 3
    two = InsertAfter("f.py", Anchor("f(x)", scope="g"), "h()\nk()\n")
    assert already(two, "def g():\n    h()\n    k()\n    f(x)\n") == 2
    assert apply(two, "def g():\n    f(x)\n    h()\n").startswith("def g():\n    f(x)\n    h()\n    k()\n")


@pytest.mark.parametrize(
    ("text", "outcome", "lines"),
    [
        ("def k():\n    f(x)\n", "anchor_missing", []),
        ("class C:\n    def g(self):\n        f(x)\n", "anchor_missing", [2]),
        ("def g():\n    f(y)\n    f(xx)\n    total(1, 2, 3)\n", "anchor_missing", [3, 2]),
        ("def g():\n    return lambda: f(x)\n", "anchor_missing", [1]),
        ("def g(): f(x)\n", "anchor_missing", [1]),
        ("def g():\n    if a: f(x)\n", "anchor_missing", [2]),
        ("def g():\n    a; f(x)\n", "anchor_missing", [2]),
        ("def g():\n    f(x); a\n", "anchor_missing", [2]),
        ("def g():\n    if a: pass\n    else: f(x)\n", "anchor_missing", [3]),
        ("def g():\n    f(x)\n    z\n    f( x )\n", "anchor_ambiguous", [2, 4]),
        ("def g(): ...\ndef g():\n    f(x)\n", "anchor_ambiguous", [1, 2]),
        ("if a:\n    def g(): ...\nelse:\n    def g():\n        f(x)\n", "anchor_ambiguous", [2, 4]),
    ],
)
def test_refused_with_the_lines_that_came_near(text: str, outcome: str, lines: list[int]) -> None:
    assert refused(IN_G, text) == (outcome, lines)


def test_an_elif_has_no_line_of_its_own() -> None:
    add = InsertAfter("f.py", Anchor("if a: ...", scope="g"), "h()\n")
    assert refused(add, "def g():\n    if q:\n        1\n    elif a:\n        2\n") == ("anchor_missing", [4])


@settings(deadline=None, max_examples=30)
@given(surroundings())
def test_bytes_outside_the_place_are_equal(around: tuple[str, str, Style]) -> None:
    above, below, style = around
    assert apply(ADD, style(above + BEFORE + below)) == style(above + AFTER + below)
