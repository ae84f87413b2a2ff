"""``add_branch``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from ddtree_patcher.codemods import AddBranch, Anchor

from .laws import STYLES, Style, already, apply, refused, surroundings, touched

ADD = AddBranch(
    "f.py", Anchor('if "A" in names: ...', scope="f"), '"C" in names', "# why: é\nx = [\n    3,\n]\ny = 3\n"
)
BEFORE = """\
def f(names):
    if "A" in names:
        x = 1  # é
    elif "B" in names:
        x = 2
        # end of two
    # neither
    else:
        x = None
    return x
"""
BRANCH = '    elif "C" in names:\n        # why: é\n        x = [\n            3,\n        ]\n        y = 3\n'
AFTER = BEFORE.replace("    # neither\n", BRANCH + "    # neither\n")
# What is inside brackets is copied as it is, in any style of indentation: a text of one line shows the styles.
SHORT = AddBranch("f.py", ADD.anchor, ADD.test, "if z:\n    x = 3  # é\n")
SHORT_AFTER = BEFORE.replace(
    "    # neither\n", '    elif "C" in names:\n        if z:\n            x = 3  # é\n    # neither\n'
)


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_the_branch_is_written_as_the_file_is(style: Style) -> None:
    assert apply(SHORT, style(BEFORE)) == style(SHORT_AFTER)


def test_every_comment_stays_in_its_place() -> None:
    assert apply(ADD, BEFORE) == AFTER


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    if 'A' in names:\n        x = 1\n", "    if 'A' in names:\n        x = 1\nNEW"),
        ("    if 'A' in names: x = 1\n    else: x = 2\n", "    if 'A' in names: x = 1\nNEW    else: x = 2\n"),
        (
            "    if 'A' in names:\n        pass\n    else:\n        if z:\n            pass\n",
            "    if 'A' in names:\n        pass\nNEW    else:\n        if z:\n            pass\n",
        ),
        (
            '    if "A" in names:\n        x = """\n    # no comment"""\n    else:\n        pass\n',
            '    if "A" in names:\n        x = """\n    # no comment"""\nNEW    else:\n        pass\n',
        ),
        (
            "    while 1:\n        if 'A' in names:\n            pass\n        return\n",
            "    while 1:\n        if 'A' in names:\n            pass\nMORE        return\n",
        ),
    ],
)
def test_every_kind_of_chain(before: str, after: str) -> None:
    new = '    elif "C" in names:\n        if z:\n            x = 3  # é\n'
    more = "".join(f"    {line}" for line in new.splitlines(keepends=True))
    assert apply(SHORT, f"def f():\n{before}") == "def f():\n" + after.replace("NEW", new).replace("MORE", more)


def test_only_what_is_new_is_touched() -> None:
    assert touched(ADD, BEFORE) == ("", BRANCH)


@pytest.mark.parametrize("text", [AFTER, BEFORE.replace("    elif", BRANCH + "    elif", 1)])
def test_already_so_wherever_the_branch_stands(text: str) -> None:
    assert text.splitlines()[already(ADD, text) - 1] == '    elif "C" in names:'


@pytest.mark.parametrize(
    ("text", "outcome", "lines"),
    [
        (BEFORE.replace("def f", "def g"), "anchor_missing", []),
        (BEFORE.replace('"A" in', '"A" not in'), "anchor_missing", [4, 2]),
        (BEFORE + BEFORE.partition("\n")[2], "anchor_ambiguous", [2, 11]),
        (BEFORE.replace('"B"', '"C"'), "half_upstreamed", [4]),
        (AFTER.replace("y = 3", "y = 4"), "half_upstreamed", [7]),
        (BEFORE.replace('"A"', '"D"').replace('"B"', '"A"'), "anchor_missing", [4]),
    ],
)
def test_refused_with_the_lines_that_came_near(text: str, outcome: str, lines: list[int]) -> None:
    assert refused(ADD, text) == (outcome, lines)


@settings(deadline=None, max_examples=20)
@given(surroundings())
def test_bytes_outside_the_place_are_equal(around: tuple[str, str, Style]) -> None:
    above, below, style = around
    assert apply(SHORT, style(above + BEFORE + below)) == style(above + SHORT_AFTER + below)
