"""``catch_also``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from ddtree_patcher.codemods import Anchor, CatchAlso

from .laws import STYLES, Style, already, apply, refused, surroundings, touched

CATCH = CatchAlso("f.py", Anchor("try:\n    ...\nexcept ...:\n    has_q = False"), ("OSError",), beside="ImportError")
BEFORE = """\
try:
    from q import r  # é

    has_q = True
except ImportError:  # not installed
    has_q = False


def f():
    raise ImportError("é")
"""
AFTER = BEFORE.replace("except ImportError:", "except (ImportError, OSError):")


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_the_rest_of_the_file_stays(style: Style) -> None:
    assert apply(CATCH, style(BEFORE)) == style(AFTER)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ImportError", "(ImportError, OSError)"),
        ("(ImportError)", "((ImportError), OSError)"),
        ("(ImportError,)", "(ImportError, OSError,)"),
        ("(A, ImportError)", "(A, ImportError, OSError)"),
        ("(ImportError, a.B)", "(ImportError, a.B, OSError)"),
    ],
)
def test_every_way_to_catch(before: str, after: str) -> None:
    text = "try:\n    import q\nexcept TYPES:\n    has_q = False\n"
    assert apply(CATCH, text.replace("TYPES", before)) == text.replace("TYPES", after)


def test_several_at_once_or_none() -> None:
    edit = CatchAlso("f.py", CATCH.anchor, ("OSError", "a.B"), beside="ImportError")
    text = "try:\n    import q\nexcept TYPES:\n    has_q = False\n"
    assert apply(edit, text.replace("TYPES", "ImportError")) == text.replace("TYPES", "(ImportError, OSError, a.B)")
    assert refused(edit, text.replace("TYPES", "(ImportError, a.B)")) == ("half_upstreamed", [3])


def test_the_handler_beside_others() -> None:
    anchor = Anchor("try:\n    ...\nexcept A as e:\n    raise\nexcept ...:\n    pass", scope="f")
    before = "def f():\n    try:\n        g()\n    except A as e:\n        raise\n    except b.C:\n        pass\n"
    assert apply(CatchAlso("f.py", anchor, ("b.D",), beside="b.C"), before) == before.replace("b.C", "(b.C, b.D)")


def test_only_the_types_are_touched() -> None:
    assert touched(CATCH, "try:\n    import q\nexcept (A, ImportError):\n    has_q = False\n") == ("", ", OSError")


@pytest.mark.parametrize("types", ["(ImportError, OSError)", "(OSError, ImportError)"])
def test_already_so(types: str) -> None:
    assert already(CATCH, f"try:\n    import q\nexcept {types}:\n    has_q = False\n") == 3


@pytest.mark.parametrize(
    ("text", "outcome", "lines"),
    [
        ("import q\n", "anchor_missing", []),
        ("try:\n    import q\nexcept Exception:\n    has_q = False\n", "anchor_missing", [3]),
        ("try:\n    import q\nexcept:\n    has_q = False\n", "anchor_missing", [1]),
        ("try:\n    import q\nexcept ImportError:\n    has_q = None\n", "anchor_missing", [1]),
        ("try:\n    import q\nexcept ImportError as e:\n    has_q = False\n", "anchor_missing", [1]),
        ("try:\n    import q\nexcept ImportError:\n    has_q = False\n" * 2, "anchor_ambiguous", [1, 5]),
    ],
)
def test_refused_with_the_lines_that_came_near(text: str, outcome: str, lines: list[int]) -> None:
    assert refused(CATCH, text) == (outcome, lines)


def test_two_handlers_of_one_type_are_refused() -> None:
    anchor = Anchor("try:\n    ...\nexcept ...:\n    pass\nexcept ...:\n    pass")
    edit = CatchAlso("f.py", anchor, ("B",), beside="A")
    text = "try:\n    import q\nexcept A:\n    pass\nexcept (A, C):\n    pass\n"
    assert refused(edit, text) == ("anchor_ambiguous", [3, 5])


@settings(deadline=None, max_examples=20)
@given(surroundings())
def test_bytes_outside_the_place_are_equal(around: tuple[str, str, Style]) -> None:
    above, below, style = around
    assert apply(CATCH, style(above + BEFORE + below)) == style(above + AFTER + below)
