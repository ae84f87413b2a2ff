"""``insert_last``: statements at the end of a function."""

from __future__ import annotations

from dataclasses import dataclass

from . import pattern
from .anchors import find_scope, holds_statements
from .insertion import insert_after
from .result import AlreadySo, Location, NotFound
from .source import Source


@dataclass(frozen=True, slots=True)
class InsertLast:
    """Put ``code`` behind the last statement of the function ``scope``, whatever that statement is.

    For what has to happen when the function has done all of its work. A function that returns early skips it.
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
        return insert_after(source, scope.body[-1], self.code)

    def symbols(self) -> tuple[str, ...]:
        return (self.scope,)
