"""``catch_also``: one more exception for a handler of a ``try`` statement."""

from __future__ import annotations

import ast
from dataclasses import dataclass

import libcst as cst

from ..model import StepOutcome
from . import pattern
from .anchors import Anchor, candidate, find_statement
from .extend_literal import appended, holder_of
from .region import Region, parse_expression
from .result import AlreadySo, Found, Location, NotFound
from .source import Source


@dataclass(frozen=True, slots=True)
class CatchAlso:
    """Let the handler that catches ``beside`` catch ``exception`` too: an import can fail in more than one way."""

    path: str  # the file, relative to the folder that holds the package
    anchor: Anchor  # the ``try`` statement; ``except ...:`` in it is a handler of any type
    exception: str  # what shall be caught as well, as an expression
    beside: str  # what the handler catches now, alone or among others; exactly one handler does

    def locate(self, source: Source) -> Location:
        statement = find_statement(source, self.anchor)
        if isinstance(statement, NotFound):
            return statement
        caught = [item.type for item in getattr(statement, "handlers", ()) if item.type is not None]
        types = [item for item in caught if _index(item, self.beside) >= 0]
        if len(types) != 1:
            outcome = StepOutcome.ANCHOR_AMBIGUOUS if types else StepOutcome.ANCHOR_MISSING
            near = tuple(candidate(source, node) for node in types or caught)
            return NotFound(outcome, f"one handler of {self.beside} in {self.anchor}", near)
        if _index(types[0], self.exception) >= 0:
            return AlreadySo(types[0].lineno)
        return self._widen(source, statement, types[0])

    def _widen(self, source: Source, statement: ast.stmt, caught: ast.expr) -> Found:
        region = Region.around(source, statement)
        new = cst.Element(parse_expression(source, self.exception))
        if isinstance(caught, ast.Tuple):
            holder = holder_of(region, caught)
            return Found(region.replace(holder, appended(holder, new)), caught.lineno)
        node = region.find(cst.BaseExpression, caught)  # type: ignore[type-abstract]
        first = cst.Element(node, comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
        return Found(region.replace(node, cst.Tuple([first, new])), caught.lineno)

    def symbols(self) -> tuple[str, ...]:
        return (self.anchor.scope,)


def _index(caught: ast.expr, exception: str) -> int:
    """The place of an exception among those that a handler catches; -1 where it is not among them."""
    wanted = pattern.expression(exception)
    types = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return next((place for place, node in enumerate(types) if pattern.same(wanted, node)), -1)
