"""``replace_expression``: one expression in the place of another."""

from __future__ import annotations

import ast
from dataclasses import dataclass

import libcst as cst

from .anchors import find_expression
from .region import Region, in_place_of, parse_expression
from .result import AlreadySo, Found, Location, NotFound
from .source import Source
from .target import Target


@dataclass(frozen=True, slots=True)
class ReplaceExpression:
    """In ``scope``, put ``new`` where the one expression of the shape ``old`` stands.

    ``old`` must not be a part of ``new``: the step would never be in effect, and the patchset is refused.
    """

    path: str  # the file, relative to the folder that holds the package
    scope: str  # the dotted definition that the expression is in; empty: the module
    old: str  # the expression, as a pattern
    new: str  # the expression that takes its place

    def locate(self, source: Source) -> Location:
        return swap(source, self.scope, self.old, self.new)

    def symbols(self) -> tuple[str, ...]:
        return (self.scope,)

    def target(self) -> Target:
        return Target(self.scope, expression=self.old)


def swap(source: Source, scope: str, old: str, new: str, *, conditions_only: bool = False) -> Location:
    """Replace the one ``old`` by ``new``, unless only ``new`` is there already."""
    usable = is_condition if conditions_only else None
    before = find_expression(source, scope, old, usable)
    if isinstance(before, NotFound):
        after = find_expression(source, scope, new, usable)
        return before if isinstance(after, NotFound) else AlreadySo(after.lineno)
    region = Region.around(source, before)
    node = region.find(cst.BaseExpression, before)  # type: ignore[type-abstract]
    return Found(region.replace(node, in_place_of(node, parse_expression(source, new))), before.lineno)


def is_condition(source: Source, node: ast.expr) -> bool:
    """Whether an expression is the whole test of an ``if``, ``while`` or ``assert``."""
    parent = source.ancestors(node)[0]
    return isinstance(parent, ast.If | ast.While | ast.IfExp | ast.Assert) and parent.test is node
