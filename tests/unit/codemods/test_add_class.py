"""``add_class``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from ddtree_patcher.codemods import AddClass, Source
from ddtree_patcher.errors import SourceError

from .laws import STYLES, Style, already, apply, refused, surroundings, touched

ADD = AddClass("f.py", "@dataclass\nclass Tree(Chain):\n    '''é'''\n\n    budget: int = 1\n", needs=("Chain",))
BEFORE = "class Chain:\n    pass  # é\n"
ADDED = "\n\n@dataclass\nclass Tree(Chain):\n    '''é'''\n\n    budget: int = 1\n"


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_the_class_is_written_as_the_file_is(style: Style) -> None:
    assert apply(ADD, style(BEFORE)) == style(BEFORE + ADDED)


@pytest.mark.parametrize(
    "end",
    [
        "# the end\n",
        "    \n",
        "\n\n\n",
        "\f\n",
        "x = '''\n'''\n",
        "x = (\n)\n",
        "if x:\n    pass\n    # é\n",
        "x = 1   ",
    ],
)
def test_behind_whatever_the_file_ends_with(end: str) -> None:
    newline = "" if end.endswith("\n") else "\n"
    expected = BEFORE + end + newline + ADDED
    assert apply(ADD, BEFORE + end) == (expected.removesuffix("\n") if newline else expected)


@pytest.mark.parametrize("text", ["# a comment\n", "'''a docstring'''\n", "import a\n"])
def test_to_a_file_without_classes(text: str) -> None:
    assert apply(ADD, text) == text + ADDED


def test_only_an_insertion_and_what_it_needs() -> None:
    assert touched(ADD, BEFORE) == ("", ADDED)
    assert ADD.symbols() == ("Chain",)


def test_already_so_whatever_the_layout() -> None:
    assert already(ADD, "import a\n" + ADDED + BEFORE) == 5
    assert already(ADD, 'class Tree(Chain):\n  "é"\n  budget: int=1\n'.replace("class", "@dataclass\nclass")) == 2


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("class Tree: ...\n", [1]),
        ("x = 1\nfrom a import Tree\n", [2]),
        ("Tree = None\n", [1]),
        ("def Tree(): ...\n", [1]),
        (ADDED.replace("@dataclass\n", ""), [3]),
        (ADDED.replace("= 1", "= 2"), [4]),
    ],
)
def test_another_thing_of_that_name_is_half_upstreamed(text: str, lines: list[int]) -> None:
    assert refused(ADD, text) == ("half_upstreamed", lines)


def test_a_last_statement_that_shares_its_line_is_refused() -> None:
    with pytest.raises(SourceError, match="share lines"):
        ADD.locate(Source.parse(b"x = 1; y = 2\n"))


@settings(deadline=None, max_examples=30)
@given(surroundings())
def test_bytes_outside_the_place_are_equal(around: tuple[str, str, Style]) -> None:
    above, below, style = around
    text = above + below + BEFORE
    assert apply(ADD, style(text)) == style(text + ADDED)
