"""Import resolution by reading."""

from __future__ import annotations

import ast

import pytest

from ddtree_patcher.tree import Tree
from ddtree_patcher.verification.names import Import, Resolver, imports_of, module_name

FILES = {
    "pkg/__init__.py": "from .base import *\n",
    "pkg/base.py": """\
import os.path, sys as system
from .other import thing as renamed
X: int = 1
Y = Z = 2
(P, [Q, *R]) = f()
if a:
    A = 1
elif b:
    def made(): hidden = 1
try:
    T = 1
except E as caught:
    U = 1
else:
    V = 1
finally:
    W = 1
with open(f) as handle: pass
for item in items: pass
class K:
    inner = 1
if (walrus := 1): pass
while True:
    L = 1
""",
    "pkg/other.py": "thing = 1\n",
    "pkg/lazy.py": "def __getattr__(name): ...\n",
    "pkg/star.py": "from outside import *\n",
    "pkg/round.py": "from .ring import *\nr = 1\n",
    "pkg/ring.py": "from .round import *\ns = 1\n",
    "pkg/sub/__init__.py": "",
    "pkg/sub/deep.py": "d = 1\n",
}
# What ``base`` binds at its top level.
BOUND = [
    *("os", "system", "renamed", "X", "Y", "Z", "P", "Q", "R", "A", "made", "T", "U", "V", "W"),
    *("handle", "item", "K", "walrus", "L"),
]
FOLDERS = frozenset({"pkg", "pkg/sub", "pkg/space"})


def resolver(files: dict[str, str] = FILES) -> Resolver:
    def nothing(path: str) -> bytes:
        raise FileNotFoundError(path)

    return Resolver(Tree(nothing, {path: text.encode() for path, text in files.items()}), FOLDERS)


class TestImports:
    @staticmethod
    def of(text: str, module: str, *, is_package: bool = False) -> list[tuple[str, str, int]]:
        found = imports_of(ast.parse(text), "pkg", module, is_package=is_package)
        return [(item.module, item.name, item.line) for item in found]

    def test_only_of_the_package_wherever_they_stand(self) -> None:
        text = """\
import os, pkg.a.b as c
from pkg.x import y, z as w
def f():
    from pkg import q
from pkgs import n
import pkgs
"""
        assert sorted(self.of(text, "pkg.m")) == [
            ("pkg", "q", 4),
            ("pkg.a.b", "", 1),
            ("pkg.x", "y", 2),
            ("pkg.x", "z", 2),
        ]

    @pytest.mark.parametrize(
        ("text", "module", "is_package", "base"),
        [
            ("from . import a", "pkg.sub.m", False, "pkg.sub"),
            ("from .n import a", "pkg.sub.m", False, "pkg.sub.n"),
            ("from .. import a", "pkg.sub.m", False, "pkg"),
            ("from ..x.y import a", "pkg.sub.m", False, "pkg.x.y"),
            ("from . import a", "pkg.sub", True, "pkg.sub"),
            ("from .n import a", "pkg.sub", True, "pkg.sub.n"),
            ("from ..n import a", "pkg.sub", True, "pkg.n"),
        ],
    )
    def test_relative_ones(self, text: str, module: str, is_package: bool, base: str) -> None:
        assert self.of(text, module, is_package=is_package) == [(base, "a", 1)]


class TestResolver:
    @pytest.mark.parametrize(
        ("module", "name"),
        [
            ("pkg", ""),
            ("pkg.base", ""),
            ("pkg.base", "*"),
            *(("pkg.base", name) for name in BOUND),
            ("pkg", "X"),
            ("pkg", "sub"),
            ("pkg", "other"),
            ("pkg.sub", "deep"),
            ("pkg.sub.deep", "d"),
            ("pkg.lazy", "anything"),
            ("pkg.star", "anything"),
            ("pkg.round", "s"),
            ("pkg.ring", "r"),
            ("pkg.space", ""),
            ("pkg", "space"),
        ],
    )
    def test_finds(self, module: str, name: str) -> None:
        assert not resolver().unresolved(Import(module, name, 1))

    @pytest.mark.parametrize(
        ("module", "name"),
        [
            ("pkg.gone", ""),
            ("pkg.gone", "x"),
            ("pkg.base", "gone"),
            ("pkg.base", "thing"),
            ("pkg.base", "hidden"),
            ("pkg.base", "inner"),
            ("pkg.base", "path"),
            ("pkg", "gone"),
            ("pkg.sub", "d"),
            ("pkg.round", "gone"),
            ("pkg.space", "x"),
            ("pkg.base.X", ""),
        ],
    )
    def test_misses(self, module: str, name: str) -> None:
        assert resolver().unresolved(Import(module, name, 1))


@pytest.mark.parametrize(
    ("path", "name"), [("pkg/a.py", "pkg.a"), ("pkg/__init__.py", "pkg"), ("pkg/sub/__init__.py", "pkg.sub")]
)
def test_the_name_of_a_module(path: str, name: str) -> None:
    assert module_name(path) == name


def test_an_import_that_the_code_expects_to_fail_is_not_one_that_has_to_resolve() -> None:
    """How code that runs on several releases asks which one it is on."""
    tree = ast.parse(
        "try:\n"
        "    from pkg.new import a\n"
        "    if x:\n"
        "        import pkg.newer\n"
        "except (AttributeError, ImportError):\n"
        "    from pkg.old import b\n"
        "else:\n"
        "    from pkg.base import c\n"
        "try:\n"
        "    from pkg.other import d\n"
        "except ValueError:\n"
        "    pass\n"
    )
    found = [(item.module, item.name) for item in imports_of(tree, "pkg", "pkg.m", is_package=False)]
    assert found == [("pkg.old", "b"), ("pkg.base", "c"), ("pkg.other", "d")]
