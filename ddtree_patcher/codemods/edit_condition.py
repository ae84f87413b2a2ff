"""``edit_condition``: another test for an ``if``, ``while``, ``assert`` or conditional expression."""

from __future__ import annotations

from dataclasses import dataclass

from .replace_expression import swap
from .result import Location
from .source import Source
from .target import Target


@dataclass(frozen=True, slots=True)
class EditCondition:
    """In ``scope``, make the one condition that is exactly ``old`` say ``new``."""

    path: str  # the file, relative to the folder that holds the package
    scope: str  # the dotted definition that the condition is in; empty: the module
    old: str  # the whole test, as an expression pattern
    new: str  # the test that takes its place, as an expression

    def locate(self, source: Source) -> Location:
        return swap(source, self.scope, self.old, self.new, conditions_only=True)

    def symbols(self) -> tuple[str, ...]:
        return (self.scope,)

    def target(self) -> Target:
        return Target(self.scope, expression=self.old, note="as the whole condition of an if, while or assert")
