"""``extend_literal``: one more element of a list, tuple or set."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TypeAlias

import libcst as cst

from ..model import StepOutcome
from . import pattern
from .anchors import Anchor, candidate, find_statement
from .region import Region, parse_expression
from .result import AlreadySo, Found, Location, NotFound
from .source import Source, statements_in
from .target import Target

_Literal = ast.List | ast.Tuple | ast.Set
_Holder: TypeAlias = cst.List | cst.Tuple | cst.Set


@dataclass(frozen=True, slots=True)
class ExtendLiteral:
    """In the statement of ``anchor``, put ``element`` behind ``beside`` in the one literal that holds that."""

    path: str  # the file, relative to the folder that holds the package
    anchor: Anchor  # the statement that the list, tuple or set is in
    element: str  # the new element, as an expression
    beside: str  # the element that it goes behind, as an expression pattern

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
            near = tuple(candidate(source, node) for node in places)
            return NotFound(outcome, f"one list, tuple or set with {self.beside} in {self.anchor}", near)
        literal = literals[0]
        if (there := _index(literal, self.element)) >= 0:
            return AlreadySo(literal.elts[there].lineno)
        return self._extend(source, literal)

    def _extend(self, source: Source, literal: _Literal) -> Found:
        region = Region.around(source, literal)
        holder = holder_of(region, literal)
        place = _index(literal, self.beside)
        new = cst.Element(parse_expression(source, self.element))
        if place + 1 < len(holder.elements):
            return Found(region.replace(holder, _inserted(holder, place, new)), literal.lineno)
        return Found(region.replace(holder, appended(holder, new)), literal.lineno)

    def symbols(self) -> tuple[str, ...]:
        return (self.anchor.scope,)

    def target(self) -> Target:
        return replace(self.anchor.target(), note=f"with one list, tuple or set that holds {self.beside}")


def _own_nodes(statement: ast.stmt) -> list[ast.AST]:
    """The nodes of a statement without those of the statements inside it."""
    inner = {node for nested in statements_in(statement) for node in ast.walk(nested)}
    inner |= {node.slice for node in ast.walk(statement) if isinstance(node, ast.Subscript)}  # no literal, an index
    return [node for node in ast.walk(statement) if node not in inner]


def _index(literal: _Literal, element: str) -> int:
    wanted = pattern.expression(element)
    return next((place for place, node in enumerate(literal.elts) if pattern.same(wanted, node)), -1)


def holder_of(region: Region, literal: _Literal) -> _Holder:
    """The libcst node of a literal that is not empty; its own brackets are no part of its place there."""
    first = region.find(cst.BaseExpression, literal.elts[0])  # type: ignore[type-abstract]
    return next(node for node in _literals(region.module) if node.elements[0].value is first)


def _literals(module: cst.Module) -> list[_Holder]:
    found: list[_Holder] = []

    class Collect(cst.CSTVisitor):
        def on_visit(self, node: cst.CSTNode) -> bool:
            if isinstance(node, cst.List | cst.Tuple | cst.Set) and node.elements:
                found.append(node)
            return True

    module.visit(Collect())
    return found


def _inserted(holder: _Holder, place: int, new: cst.Element) -> _Holder:
    """One more element behind ``place``; the comment behind that one stays, comment lines stay with what follows."""
    before, after = list(holder.elements[: place + 1]), list(holder.elements[place + 1 :])
    comma = before[-1].comma
    assert isinstance(comma, cst.Comma)
    gap = comma.whitespace_after
    if isinstance(gap, cst.ParenthesizedWhitespace):
        before[-1] = before[-1].with_changes(
            comma=comma.with_changes(whitespace_after=gap.with_changes(empty_lines=[]))
        )
        comma = comma.with_changes(whitespace_after=gap.with_changes(first_line=cst.TrailingWhitespace()))
    return holder.with_changes(elements=[*before, new.with_changes(comma=comma), *after])


def appended(holder: _Holder, new: cst.Element) -> _Holder:
    """One more element at the end, separated as the others are; a comment behind the last one stays there."""
    *before, last = holder.elements
    between = next((item.comma for item in before if isinstance(item.comma, cst.Comma)), None)
    opening, closing = _brackets(holder)
    gap = between.whitespace_after if between else opening
    if isinstance(gap, cst.ParenthesizedWhitespace):
        gap = gap.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[])
        if isinstance(closing, cst.ParenthesizedWhitespace) and closing.first_line.comment:
            gap = gap.with_changes(first_line=closing.first_line)
            holder = _closed(holder, closing.with_changes(first_line=cst.TrailingWhitespace()))
    elif not between:
        gap = cst.SimpleWhitespace(" ")
    separator = (between or cst.Comma()).with_changes(whitespace_after=gap)
    elements = [*before, last.with_changes(comma=separator), new.with_changes(comma=last.comma)]
    return holder.with_changes(elements=elements)


def _brackets(holder: _Holder) -> tuple[cst.BaseParenthesizableWhitespace, cst.BaseParenthesizableWhitespace]:
    """What stands behind the opening bracket and before the closing one."""
    if isinstance(holder, cst.List):
        return holder.lbracket.whitespace_after, holder.rbracket.whitespace_before
    if isinstance(holder, cst.Set):
        return holder.lbrace.whitespace_after, holder.rbrace.whitespace_before
    if not holder.lpar:
        return cst.SimpleWhitespace(""), cst.SimpleWhitespace("")
    return holder.lpar[-1].whitespace_after, holder.rpar[0].whitespace_before


def _closed(holder: _Holder, gap: cst.BaseParenthesizableWhitespace) -> _Holder:
    if isinstance(holder, cst.List):
        return holder.with_changes(rbracket=holder.rbracket.with_changes(whitespace_before=gap))
    if isinstance(holder, cst.Set):
        return holder.with_changes(rbrace=holder.rbrace.with_changes(whitespace_before=gap))
    return holder.with_changes(rpar=[holder.rpar[0].with_changes(whitespace_before=gap), *holder.rpar[1:]])
