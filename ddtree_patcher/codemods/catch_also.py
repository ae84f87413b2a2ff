"""``catch_also``: more exceptions for a handler of a ``try`` statement."""

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
    """Let the handler that catches ``beside`` catch ``exceptions`` too: an import can fail in more than one way.

    A handler that catches some of them is refused, as half upstreamed.
    """

    path: str  # the file, relative to the folder that holds the package
    anchor: Anchor  # the ``try`` statement; ``except ...:`` in it is a handler of any type
    exceptions: tuple[str, ...]  # what shall be caught as well, each an expression
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
        there = [item for item in self.exceptions if _index(types[0], item) >= 0]
        if len(there) == len(self.exceptions):
            return AlreadySo(types[0].lineno)
        if there:
            wanted = f"{', '.join(self.exceptions)} caught beside {self.beside}, or none of them"
            return NotFound(StepOutcome.HALF_UPSTREAMED, wanted, (candidate(source, types[0]),))
        return self._widen(source, statement, types[0])

    def _widen(self, source: Source, statement: ast.stmt, caught: ast.expr) -> Found:
        region = Region.around(source, statement)
        node: cst.BaseExpression
        if isinstance(caught, ast.Tuple):
            node = holder = holder_of(region, caught)
        else:
            node = region.find(cst.BaseExpression, caught)  # type: ignore[type-abstract]
            holder = cst.Tuple([cst.Element(node)])
        for item in self.exceptions:
            holder = appended(holder, cst.Element(parse_expression(source, item)))
        return Found(region.replace(node, holder), caught.lineno)

    def symbols(self) -> tuple[str, ...]:
        return (self.anchor.scope,)


def _index(caught: ast.expr, exception: str) -> int:
    """The place of an exception among those that a handler catches; -1 where it is not among them."""
    wanted = pattern.expression(exception)
    types = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return next((place for place, node in enumerate(types) if pattern.same(wanted, node)), -1)
