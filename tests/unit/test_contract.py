"""Contracts: what inserted code needs of upstream code."""

from __future__ import annotations

import pytest

from ddtree_patcher.contract import breaches
from ddtree_patcher.patchset import Contract
from ddtree_patcher.tree import Tree

TEXT = b"""\
from x import imported
LIMIT = 3
def plain(a, /, b, *, c=1): ...
def anything(**options): ...
async def later(a): ...
class Worker:
    size: int = 1
    def __init__(self, args): ...
    @overload
    def run(self, old): ...
    def run(self, new): ...
"""


def broken(*contracts: Contract) -> list[tuple[str, int]]:
    def nothing(path: str) -> bytes:
        raise FileNotFoundError(path)

    return [(item.reason, item.line) for item in breaches(contracts, Tree(nothing, {"f.py": TEXT}))]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("imported", ()),
        ("LIMIT", ()),
        ("Worker", ()),
        ("Worker.size", ()),
        ("plain", ("a", "b", "c")),
        ("plain", ()),
        ("anything", ("whatever",)),
        ("later", ("a",)),
        ("Worker.__init__", ("self", "args")),
        ("Worker.run", ("self", "new")),
    ],
)
def test_holds(name: str, parameters: tuple[str, ...]) -> None:
    assert broken(Contract("f.py", name, parameters)) == []


@pytest.mark.parametrize(
    ("name", "parameters", "words", "line"),
    [
        ("gone", (), "needs gone in f.py", 0),
        ("Worker.gone", (), "needs Worker.gone", 10),
        ("Gone.size", (), "needs Gone.size", 0),
        ("imported", ("a",), "needs imported in f.py", 0),
        ("plain", ("a", "d", "e"), "plain in f.py no longer takes d, e", 3),
        ("Worker.run", ("old",), "no longer takes old", 11),
    ],
)
def test_breach(name: str, parameters: tuple[str, ...], words: str, line: int) -> None:
    ((reason, at),) = broken(Contract("f.py", name, parameters))
    assert words in reason and at == line


def test_a_file_that_is_not_there() -> None:
    assert broken(Contract("g.py", "x")) == [("the contract names g.py, which does not exist", 0)]


def test_every_breach_is_told() -> None:
    assert len(broken(Contract("f.py", "gone"), Contract("f.py", "LIMIT"), Contract("g.py", "x"))) == 2
