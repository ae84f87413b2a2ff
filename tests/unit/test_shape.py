"""Probes of the code's shape."""

from __future__ import annotations

import pytest

from ddtree_patcher.codemods import Anchor
from ddtree_patcher.errors import SourceError
from ddtree_patcher.shape import Defines, HasFile, Holds, Lacks, Shape
from ddtree_patcher.tree import Tree

TEXT = b"""\
import torch.cuda
from a import b as c, d
LIMIT: int = 3
x = y = 1
if x:
    class Tree:
        width = 1

        def grow(self):
            run(1)
            run(1)
            stop()
    hidden = 2
def make():
    inner = 1
"""


def holds(shape: Shape) -> bool:
    return shape.holds(
        Tree(lambda path: {"f.py": TEXT, "empty.py": b""}[path] if path in ("f.py", "empty.py") else _no(path))
    )


def _no(path: str) -> bytes:
    raise FileNotFoundError(path)


@pytest.mark.parametrize(("path", "there"), [("f.py", True), ("empty.py", True), ("gone.py", False)])
def test_has_file(path: str, there: bool) -> None:
    assert holds(HasFile(path)) is there
    assert holds(Lacks(HasFile(path))) is not there


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("torch", True),
        ("c", True),
        ("b", False),
        ("d", True),
        ("LIMIT", True),
        ("x", True),
        ("y", True),
        ("Tree", True),
        ("Tree.grow", True),
        ("Tree.width", True),
        ("Tree.height", False),
        ("make", True),
        ("make.inner", True),
        ("Gone.x", False),
        ("Gone.make", False),
        ("Tree.make", False),
        ("grow", False),
        ("gone", False),
    ],
)
def test_defines(name: str, there: bool) -> None:
    assert holds(Defines("f.py", name)) is there
    assert not holds(Defines("gone.py", name))


@pytest.mark.parametrize(
    ("anchor", "there"),
    [
        (Anchor("stop()", scope="Tree.grow"), True),
        (Anchor("stop()"), True),
        (Anchor("run(1)", scope="Tree.grow"), False),
        (Anchor("stop()", scope="make"), False),
        (Anchor("stop()", scope="gone"), False),
    ],
)
def test_holds_exactly_one(anchor: Anchor, there: bool) -> None:
    assert holds(Holds("f.py", anchor)) is there
    assert holds(Lacks(Holds("f.py", anchor))) is not there
    assert not holds(Holds("gone.py", anchor))


def test_in_words_and_by_files() -> None:
    shapes: list[Shape] = [
        HasFile("f.py"),
        Defines("f.py", "A.b"),
        Holds("f.py", Anchor("x", scope="A")),
        Lacks(HasFile("f.py")),
    ]
    assert [str(shape) for shape in shapes] == [
        "f.py exists",
        "f.py defines A.b",
        "f.py has `x` in A",
        "not: f.py exists",
    ]
    assert {path for shape in shapes for path in shape.paths()} == {"f.py"}


def test_a_file_that_is_not_python_is_no_answer() -> None:
    broken = Tree(_no, {"f.py": b"def (\n"})
    assert HasFile("f.py").holds(broken)
    for shape in (Defines("f.py", "x"), Holds("f.py", Anchor("x"))):
        with pytest.raises(SourceError):
            shape.holds(broken)
