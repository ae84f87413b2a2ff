"""``insert_last``: statements at the end of a function."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ..model import StepOutcome
from . import pattern
from .anchors import candidate, find_scope, holds_statements
from .insertion import insert_after
from .result import AlreadySo, Location, NotFound
from .source import Source
from .target import Target


@dataclass(frozen=True, slots=True)
class InsertLast:
    """Put ``code`` behind the last statement of the function ``scope``, whatever that statement is.

    For what has to happen when the function has done all of its work: one that returns by itself is refused, as it may
    never come to its end.
    """

    path: str  # the file, relative to the folder that holds the package
    scope: str  # the function, as a dotted name
    code: str  # the statements to insert, at column 0

    def locate(self, source: Source) -> Location:
        scope = find_scope(source, self.scope)
        if isinstance(scope, NotFound):
            return scope
        if line := holds_statements(source, scope, pattern.statements(self.code)):
            return AlreadySo(line)
        if leaves := _returns(scope):
            places = tuple(candidate(source, node) for node in leaves)
            return NotFound(StepOutcome.ANCHOR_MISSING, f"{self.scope} without a `return`", places)
        return insert_after(source, scope.body[-1], self.code)

    def symbols(self) -> tuple[str, ...]:
        return (self.scope,)

    def target(self) -> Target:
        return Target(self.scope, note="the end of this function, which no `return` comes before")


def _returns(node: ast.AST) -> list[ast.Return]:
    """The ``return`` statements of a function itself, without those of functions in it."""
    found: list[ast.Return] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return):
            found.append(child)
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            found += _returns(child)
    return found
