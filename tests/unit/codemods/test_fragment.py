"""Fragments: code to insert, from a real Python file."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddtree_patcher.codemods import Fragments
from ddtree_patcher.errors import SourceError

TEXT = '''\
"""Where it goes."""


class Args:
    """The fields."""

    # Nodes.
    budget: int = 16  # é
    text = """
        as it is
    """

    @property
    # why
    def wide(self) -> int:
        """Doc."""
        # About it.
        x = 1

        return x


@dec(
    1,
)
class Tree: ...


def plain():
    if a:
        b
'''


@pytest.fixture(params=["\n", "\r\n"])
def fragments(request: pytest.FixtureRequest, tmp_path: Path) -> Fragments:
    path = tmp_path / "code.py"
    path.write_bytes(TEXT.replace("\n", request.param).encode())
    return Fragments.load(path)


def test_a_definition_with_its_decorators_at_column_0(fragments: Fragments) -> None:
    assert fragments.definition("Tree") == "@dec(\n    1,\n)\nclass Tree: ...\n"
    assert fragments.definition("Args.wide") == (
        '@property\n# why\ndef wide(self) -> int:\n    """Doc."""\n    # About it.\n    x = 1\n\n    return x\n'
    )


def test_a_body_without_its_docstring_and_with_its_first_comment(fragments: Fragments) -> None:
    assert fragments.body("Args.wide") == "# About it.\nx = 1\n\nreturn x\n"
    assert fragments.body("plain") == "if a:\n    b\n"


def test_a_body_with_a_string_over_several_lines(fragments: Fragments) -> None:
    assert fragments.body("Args").startswith('# Nodes.\nbudget: int = 16  # é\ntext = """\n    as it is\n"""\n')


def test_what_is_not_there_or_twice(fragments: Fragments, tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        fragments.definition("Other")
    path = tmp_path / "twice.py"
    path.write_text("def f(): ...\ndef f(): ...\n")
    with pytest.raises(ValueError, match="too many"):
        Fragments.load(path).definition("f")


def test_a_file_that_is_not_python(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("def f(:\n")
    with pytest.raises(SourceError, match=r"broken\.py"):
        Fragments.load(path)
