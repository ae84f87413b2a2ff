"""Probes of the code's shape: how a step chooses its variant, and what it promises when it is done.

Never a version string: backports, forks and nightly builds carry the code of one release under the number of another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from .codemods import NotFound, Target
from .codemods.anchors import Anchor, described, find_scope, find_statement
from .codemods.members import names_of
from .tree import Tree


class Shape(Protocol):
    """A question about files that is answered by yes or no; ``str()`` says it in words."""

    def holds(self, tree: Tree) -> bool: ...

    def paths(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class HasFile:
    path: str

    def holds(self, tree: Tree) -> bool:
        return tree.get(self.path) is not None

    def paths(self) -> tuple[str, ...]:
        return (self.path,)

    def __str__(self) -> str:
        return f"{self.path} exists"


@dataclass(frozen=True, slots=True)
class Defines:
    """The file binds a dotted name: a class, function, member or constant."""

    path: str
    name: str

    def holds(self, tree: Tree) -> bool:
        return tree.get(self.path) is not None and self.miss(tree) is None

    def miss(self, tree: Tree) -> NotFound | None:
        """Which definitions come near; None when it holds, or when there is no such file."""
        source = tree.source(self.path)
        if source is None or self.name in source.definitions:
            return None
        scope, _, last = self.name.rpartition(".")
        holder = find_scope(source, scope)
        if not isinstance(holder, NotFound) and any(last in names_of(node) for node in holder.body):
            return None
        missing = find_scope(source, self.name)
        assert isinstance(missing, NotFound)
        return missing

    def target(self) -> Target:
        return Target(self.name, is_scope=True)

    def paths(self) -> tuple[str, ...]:
        return (self.path,)

    def __str__(self) -> str:
        return f"{self.path} defines {self.name}"


@dataclass(frozen=True, slots=True)
class Holds:
    """The file has exactly one statement that the anchor describes."""

    path: str
    anchor: Anchor

    def holds(self, tree: Tree) -> bool:
        source = tree.source(self.path)
        return source is not None and len(described(source, self.anchor)) == 1

    def miss(self, tree: Tree) -> NotFound | None:
        """Which places come near, or are too many; None when it holds, or when there is no such file."""
        source = tree.source(self.path)
        found = find_statement(source, self.anchor) if source is not None else None
        return found if isinstance(found, NotFound) else None

    def target(self) -> Target:
        return self.anchor.target()

    def paths(self) -> tuple[str, ...]:
        return (self.path,)

    def __str__(self) -> str:
        return f"{self.path} has {self.anchor}"


@dataclass(frozen=True, slots=True)
class Lacks:
    """The opposite of another shape."""

    shape: Shape

    def holds(self, tree: Tree) -> bool:
        return not self.shape.holds(tree)

    def paths(self) -> tuple[str, ...]:
        return self.shape.paths()

    def __str__(self) -> str:
        return f"not: {self.shape}"
