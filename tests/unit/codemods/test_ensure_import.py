"""``ensure_import``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from ddtree_patcher.codemods import EnsureImport, Source
from ddtree_patcher.errors import SourceError

from .laws import STYLES, Style, already, apply, refused, surroundings, touched

ADD = EnsureImport("f.py", "a.b", "M")
BEFORE = "'é'\nfrom a.b import K, Z  # noqa: F401 é\n\n\ndef run():\n    pass\n"
AFTER = "'é'\nfrom a.b import (\n    K,\n    M,\n    Z,\n)  # noqa: F401 é\n\n\ndef run():\n    pass\n"


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_the_import_is_written_as_the_file_is(style: Style) -> None:
    assert apply(ADD, style(BEFORE)) == style(AFTER)


@pytest.mark.parametrize(
    ("before", "names"),
    [
        ("A", "AM"),
        ("Z", "MZ"),
        ("Z, A", "MZA"),
        ("(A, Z)", "AMZ"),
        ("(\n    A,\n    Z\n)", "AMZ"),
        ("A, \\\n    Z", "AMZ"),
        ("( A,\n  Z )", "AMZ"),
    ],
)
def test_in_its_place_in_the_form_of_a_line_a_name(before: str, names: str) -> None:
    lines = "".join(f"    {name},\n" for name in names)
    assert apply(ADD, f"from a.b import {before}\nx = 1\n") == f"from a.b import (\n{lines})\nx = 1\n"


def test_other_names_keep_their_aliases() -> None:
    assert (
        apply(ADD, "from a.b import A as C, Z as M2\n") == "from a.b import (\n    A as C,\n    M,\n    Z as M2,\n)\n"
    )
    assert apply(ADD, "from a.b import M as N\n") == "from a.b import (\n    M as N,\n    M,\n)\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    A,  # one\n    Z,\n", "    A,  # one\n    M,\n    Z,\n"),
        ("    A,\n    Z,  # é\n", "    A,\n    M,\n    Z,  # é\n"),
        ("    A,\n    B,  # last\n", "    A,\n    B,  # last\n    M,\n"),
        ("    A,\n    B  # last\n", "    A,\n    B,  # last\n    M,\n"),
        (
            "    # first\n    A,\n    # second\n    Z,\n    # end\n",
            "    # first\n    A,\n    M,\n    # second\n    Z,\n    # end\n",
        ),
        ("    Z,\n    # end\n", "    M,\n    Z,\n    # end\n"),
        ("    A,\n    # end\n", "    A,\n    M,\n    # end\n"),
    ],
)
def test_every_comment_stays_with_its_name(before: str, after: str) -> None:
    assert apply(ADD, f"from a.b import (\n{before})\n") == f"from a.b import (\n{after})\n"


def test_lines_that_are_there_already_are_not_touched() -> None:
    assert touched(ADD, "from a.b import (\n    A,\n    Z,\n)\n") == ("", "M,\n    ")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("from a.b import M\n", 1),
        ("from a.b import (\n    A,\n    M,\n)\n", 1),
        ("from a.b import A\nfrom a.b import M\n", 2),
        ("from a.b import A, M as N\nfrom a.b import M\n", 2),
    ],
)
def test_already_so(text: str, line: int) -> None:
    assert already(ADD, text) == line


@pytest.mark.parametrize(
    ("text", "outcome", "lines"),
    [
        ("import a.b\n", "anchor_missing", [1]),
        ("from c.b import A\nfrom d import e\n", "anchor_missing", [1]),
        ("from .a.b import A\n", "anchor_missing", [1]),
        ("from a.b import *\n", "anchor_missing", [1]),
        ("if 1:\n    from a.b import A\n", "anchor_missing", []),
        ("try:\n    from a.b import M\nexcept ImportError:\n    M = None\n", "anchor_missing", []),
        ("from a.b import A\nfrom a.b import Z\n", "anchor_ambiguous", [1, 2]),
    ],
)
def test_refused_with_the_lines_that_came_near(text: str, outcome: str, lines: list[int]) -> None:
    assert refused(ADD, text) == (outcome, lines)


def test_an_import_that_shares_its_line_is_refused() -> None:
    with pytest.raises(SourceError, match="share lines"):
        ADD.locate(Source.parse(b"from a.b import A; x = 1\n"))


@settings(deadline=None, max_examples=30)
@given(surroundings())
def test_bytes_outside_the_place_are_equal(around: tuple[str, str, Style]) -> None:
    above, below, style = around
    assert apply(ADD, style(above + BEFORE + below)) == style(above + AFTER + below)
