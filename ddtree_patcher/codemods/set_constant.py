"""``set_constant``: another value for a name that is assigned once."""

from __future__ import annotations

import ast
from dataclasses import dataclass

import libcst as cst

from ..model import StepOutcome
from . import pattern
from .anchors import assigned_names, candidate, find_scope
from .members import member_not_found
from .region import Region, in_place_of, parse_expression
from .result import AlreadySo, Found, Location, NotFound
from .source import Source, statements_in


@dataclass(frozen=True, slots=True)
class SetConstant:
    """Give ``name`` the value ``new`` where it is assigned ``old``.

    A value that is neither is refused: whoever wrote it had a reason, and the new value was not chosen with it in mind.
    """

    path: str  # the file, relative to the folder that holds the package
    name: str  # a plain name that one statement of the scope assigns, with or without an annotation
    old: str  # the value that it has, as an expression pattern; "..." takes any
    new: str  # the value that it gets, as an expression
    scope: str = ""  # the dotted definition that the statement is in; empty: the module

    def locate(self, source: Source) -> Location:
        scope = find_scope(source, self.scope)
        if isinstance(scope, NotFound):
            return scope
        found = [node for node in statements_in(scope) if assigned_names(node) == [self.name] and _value(node)]
        wanted = f"`{self.name} = {self.old}`" + (f" in {self.scope}" if self.scope else "")
        if not found:
            return member_not_found(source, scope, wanted, self.name)
        near = tuple(candidate(source, node) for node in found)
        if len(found) > 1:
            return NotFound(StepOutcome.ANCHOR_AMBIGUOUS, f"exactly one {wanted}", near)
        value = _value(found[0])
        assert value is not None
        if pattern.same(pattern.expression(self.new), value):
            return AlreadySo(found[0].lineno)
        if not pattern.matches(pattern.expression(self.old), value):
            return NotFound(StepOutcome.ANCHOR_MISSING, wanted, near)
        return self._assign(source, value)

    def _assign(self, source: Source, value: ast.expr) -> Found:
        region = Region.around(source, value)
        node = region.find(cst.BaseExpression, value)  # type: ignore[type-abstract]
        return Found(region.replace(node, in_place_of(node, parse_expression(source, self.new))), value.lineno)

    def symbols(self) -> tuple[str, ...]:
        return (f"{self.scope}.{self.name}" if self.scope else self.name,)


def _value(node: ast.stmt) -> ast.expr | None:
    return node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
