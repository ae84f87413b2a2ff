"""``add_field``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from ddtree_patcher.codemods import AddField

from .laws import STYLES, Style, already, apply, refused, surroundings, touched

ADD = AddField("f.py", "Args", "# Nodes, é.\nbudget: int = 16\ntopk: int = 8\n", after="block_size")
BEFORE = """\
@dataclass
class Args:
    block_size: Optional[int] = None  # "é"
    page_size: int = 1
"""
AFTER = """\
@dataclass
class Args:
    block_size: Optional[int] = None  # "é"
    # Nodes, é.
    budget: int = 16
    topk: int = 8
    page_size: int = 1
"""


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_the_fields_are_written_as_the_file_is(style: Style) -> None:
    assert apply(ADD, style(BEFORE)) == style(AFTER)
    assert apply(ADD, style(BEFORE.replace("    page_size: int = 1\n", ""))) == style(
        AFTER.replace("    page_size: int = 1\n", "")
    )


@pytest.mark.parametrize(
    "value",
    ["None", "field(\n        default=None,\n    )", '"""a\nb"""', "1 + \\\n        2", "None   "],
    ids=["one-line", "call", "string", "backslash", "trailing-blanks"],
)
def test_behind_the_last_line_of_the_field(value: str) -> None:
    before = f"class Args:\n    block_size: int = {value}\n    page_size: int = 1\n"
    added = "    # Nodes, é.\n    budget: int = 16\n    topk: int = 8\n"
    assert apply(ADD, before) == before.replace("    page_size", added + "    page_size")


def test_only_an_insertion() -> None:
    assert touched(ADD, BEFORE) == ("", "    # Nodes, é.\n    budget: int = 16\n    topk: int = 8\n")


def test_already_so_whatever_the_order() -> None:
    assert already(ADD, AFTER) == 5
    assert already(ADD, "class Args:\n    topk:   int = 8\n    budget: int = 0x10\n") == 3


@pytest.mark.parametrize(
    ("text", "outcome", "lines"),
    [
        ("x = 1\n", "anchor_missing", []),
        ("class Args:\n    block_sizes: int = 1\n    page: int = 1\n", "anchor_missing", [2]),
        ("class Args:\n    def __init__(self):\n        self.block_size = 1\n", "anchor_missing", []),
        ("class Args:\n    block_size: int = 1; page: int = 2\n", "anchor_missing", [2]),
        ("class Args:\n    block_size: int = 1\n    block_size: int = 2\n", "anchor_ambiguous", [2, 3]),
        ("class Args:\n    block_size = 1\n    budget: int = 16\n", "half_upstreamed", [3]),
        ("class Args:\n    block_size = 1\n    budget: int = 16\n    topk: int = 9\n", "half_upstreamed", [3, 4]),
        ("class Args:\n    block_size = 1\n    def topk(self): ...\n", "half_upstreamed", [3]),
    ],
)
def test_refused_with_the_lines_that_came_near(text: str, outcome: str, lines: list[int]) -> None:
    assert refused(ADD, text) == (outcome, lines)


@settings(deadline=None, max_examples=30)
@given(surroundings())
def test_bytes_outside_the_place_are_equal(around: tuple[str, str, Style]) -> None:
    above, below, style = around
    assert apply(ADD, style(above + BEFORE + below)) == style(above + AFTER + below)
