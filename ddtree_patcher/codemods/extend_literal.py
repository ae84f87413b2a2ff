"""``extend_literal``: one more element of a list, tuple or set."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from ..model import StepOutcome
from . import pattern
from .anchors import Anchor, find_statement
from .region import Region, parse_expression
from .result import AlreadySo, Candidate, Found, Location, NotFound
from .source import Source, statements_in

_Literal = ast.List | ast.Tuple | ast.Set


@dataclass(frozen=True, slots=True)
class ExtendLiteral:
    """In the statement of ``anchor``, put ``element`` behind ``beside`` in the one literal that holds that."""

    path: str
    anchor: Anchor
    element: str
    beside: str

    def locate(self, source: Source) -> Location:
        statement = find_statement(source, self.anchor)
        if isinstance(statement, NotFound):
            return statement
        literals: list[_Literal] = [
            node for node in _own_nodes(statement) if isinstance(node, _Literal) and _index(node, self.beside) >= 0
        ]
        if len(literals) != 1:
            outcome = StepOutcome.ANCHOR_AMBIGUOUS if literals else StepOutcome.ANCHOR_MISSING
            places: list[ast.stmt | ast.expr] = [*literals] or [statement]
            near = tuple(Candidate(node.lineno, source.line(node.lineno).decode().strip()) for node in places)
            return NotFound(outcome, f"one list, tuple or set with {self.beside} in {self.anchor}", near)
        literal = literals[0]
        if (there := _index(literal, self.element)) >= 0:
            return AlreadySo(literal.elts[there].lineno)
        return self._extend(source, literal)

    def _extend(self, source: Source, literal: _Literal) -> Found:
        region = Region.around(source, literal)
        first = region.find(cst.BaseExpression, literal.elts[0])  # type: ignore[type-abstract]
        holder = next(node for node in _literals(region.module) if node.elements[0].value is first)
        place = _index(literal, self.beside)
        new = cst.Element(parse_expression(source, self.element))
        replaced = holder.with_changes(elements=_inserted(holder.elements, place, new))
        return Found(region.replace(holder, replaced), literal.lineno)

    def symbols(self) -> tuple[str, ...]:
        return (self.anchor.scope,)


def _own_nodes(statement: ast.stmt) -> list[ast.AST]:
    """The nodes of a statement without those of the statements inside it."""
    inner = {node for nested in statements_in(statement) for node in ast.walk(nested)}
    return [node for node in ast.walk(statement) if node not in inner]


def _index(literal: _Literal, element: str) -> int:
    wanted = pattern.expression(element)
    return next((place for place, node in enumerate(literal.elts) if pattern.same(wanted, node)), -1)


def _literals(module: cst.Module) -> list[cst.List | cst.Tuple | cst.Set]:
    found: list[cst.List | cst.Tuple | cst.Set] = []

    class Collect(cst.CSTVisitor):
        def on_visit(self, node: cst.CSTNode) -> bool:
            if isinstance(node, cst.List | cst.Tuple | cst.Set) and node.elements:
                found.append(node)
            return True

    module.visit(Collect())
    return found


def _inserted(elements: Sequence[cst.BaseElement], place: int, new: cst.Element) -> list[cst.BaseElement]:
    """The elements with one more behind ``place``, separated as the others are."""
    before, after = list(elements[: place + 1]), list(elements[place + 1 :])
    last = before[-1]
    between = next((item.comma for item in elements[:-1] if isinstance(item.comma, cst.Comma)), None)
    separator = between or cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    if after:
        return [*before, new.with_changes(comma=last.comma), *after]
    return [*before[:-1], last.with_changes(comma=separator), new.with_changes(comma=last.comma)]
