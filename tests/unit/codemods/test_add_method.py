"""``add_method``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from ddtree_patcher.codemods import AddMethod

from .laws import STYLES, Style, already, apply, refused, surroundings, touched

CODE = """\
@property
def is_tree(self) -> bool:
    # It grows.
    if self.é:
        return "x" in (
            'y',
        )

    return False
"""
ADD = AddMethod("f.py", "Worker", CODE, after="is_chain")
BEFORE = """\
class Worker(Base):
    @property
    def is_chain(self) -> bool:
        return True   # é

    # About run.
    @timed("é")
    def run(self):
        pass
"""
ADDED = """\

    @property
    def is_tree(self) -> bool:
        # It grows.
        if self.é:
            return "x" in (
                'y',
            )

        return False
"""
HEAD, TAIL = BEFORE[: BEFORE.index("\n    # About")], BEFORE[BEFORE.index("\n    # About") :]
# The lines inside parentheses keep the indentation that they were written with.
STYLES_OF_CODE = {name: style for name, style in STYLES.items() if "tabs" not in name and "two" not in name}


@pytest.mark.parametrize("style", STYLES_OF_CODE.values(), ids=STYLES_OF_CODE)
def test_the_method_is_written_as_the_file_is(style: Style) -> None:
    assert apply(ADD, style(BEFORE)) == style(HEAD + ADDED + TAIL)
    assert apply(ADD, style(HEAD)) == style(HEAD + ADDED)


@pytest.mark.parametrize("name", ["tabs", "two-spaces", "windows-tabs-no-final-newline"])
def test_nested_blocks_are_indented_as_the_file_is(name: str) -> None:
    style = STYLES[name]
    add = AddMethod("f.py", "Worker", "def z(self):\n    for a in b:\n        if a:\n            c\n", after="is_chain")
    added = "\n    def z(self):\n        for a in b:\n            if a:\n                c\n"
    assert apply(add, style(BEFORE)) == style(HEAD + added + TAIL)


def test_a_string_over_several_lines_keeps_its_margin() -> None:
    add = AddMethod("f.py", "C", 'def b(self):\n    return """x\n  y\n"""\n', after="a")
    assert apply(add, "class C:\n\tdef a(self): pass\n") == (
        'class C:\n\tdef a(self): pass\n\n\tdef b(self):\n\t\treturn """x\n  y\n"""\n'
    )


def test_several_methods() -> None:
    add = AddMethod("f.py", "C", "def b(self): ...\n\n\nasync def c(self): ...\n", after="a")
    assert apply(add, "class C:\n    def a(self): ...\n") == (
        "class C:\n    def a(self): ...\n\n    def b(self): ...\n\n\n    async def c(self): ...\n"
    )


@pytest.mark.parametrize("member", ["a = 1", "a: int = 1", "async def a(self): ...", "class a: ...", "import a"])
def test_behind_any_member(member: str) -> None:
    add = AddMethod("f.py", "C", "def b(self): ...\n", after="a")
    before = f"class C:\n    {member}\n    z = 1\n"
    assert apply(add, before) == f"class C:\n    {member}\n\n    def b(self): ...\n    z = 1\n"


def test_deep_nesting() -> None:
    levels = 18
    before = "".join("    " * level + f"class C{level}:\n" for level in range(levels)) + "    " * levels + "a = 1\n"
    add = AddMethod("f.py", ".".join(f"C{level}" for level in range(levels)), "def b(self): ...\n", after="a")
    assert apply(add, before) == before + "\n" + "    " * levels + "def b(self): ...\n"


def test_only_an_insertion() -> None:
    assert touched(ADD, BEFORE) == ("", ADDED)


def test_already_so_whatever_the_layout() -> None:
    assert already(ADD, HEAD + ADDED + TAIL) == 7
    assert (
        already(
            AddMethod("f.py", "C", "def b(self): return 'x'\n", after="a"), 'class C:\n  def b(self):\n    return "x"\n'
        )
        == 2
    )


@pytest.mark.parametrize(
    ("text", "outcome", "lines"),
    [
        ("class Other:\n    def is_chain(self): ...\n", "anchor_missing", []),
        ("class Worker:\n    def is_chains(self): ...\n", "anchor_missing", [2]),
        ("class Worker:\n    def run(self): ...\n", "anchor_missing", []),
        ("class Worker: is_chain = 1\n", "anchor_missing", [1]),
        ("class Worker:\n    is_chain = 1; b = 2\n", "anchor_missing", [2]),
        (
            "class Worker:\n    @overload\n    def is_chain(self): ...\n    def is_chain(self): ...\n",
            "anchor_ambiguous",
            [3, 4],
        ),
        ("class Worker: ...\n\n\nclass Worker: ...\n", "anchor_ambiguous", [1, 4]),
        ("class Worker:\n    def is_chain(self): ...\n    def is_tree(self): ...\n", "half_upstreamed", [3]),
        ("class Worker:\n    is_chain = 1\n    is_tree = 2\n", "half_upstreamed", [3]),
    ],
)
def test_refused_with_the_lines_that_came_near(text: str, outcome: str, lines: list[int]) -> None:
    assert refused(ADD, text) == (outcome, lines)


@settings(deadline=None, max_examples=30)
@given(surroundings())
def test_bytes_outside_the_place_are_equal(around: tuple[str, str, Style]) -> None:
    above, below, style = around
    assert apply(ADD, style(above + BEFORE + below)) == style(above + HEAD + ADDED + TAIL + below)
