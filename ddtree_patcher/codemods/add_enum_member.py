"""``add_enum_member``: one more member of an enum."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ..model import StepOutcome
from . import pattern
from .anchors import Scope, assigned_names, candidate, find_scope
from .insertion import insert_after
from .members import find_member, member_not_found
from .result import AlreadySo, Location, NotFound
from .source import Source
from .target import Target


@dataclass(frozen=True, slots=True)
class AddEnumMember:
    """Give ``enum`` a member ``name`` behind the member ``after``, with a value written like that one's: ``auto()``.

    In an Enum, a literal value is refused: written twice it would make an alias.
    """

    path: str  # the file, relative to the folder that holds the package
    enum: str  # the class, as a dotted name
    name: str  # the new member
    after: str  # the member that it goes behind, assigned by one statement

    def locate(self, source: Source) -> Location:
        scope = find_scope(source, self.enum)
        if isinstance(scope, NotFound):
            return scope
        wanted = f"member {self.after} of {self.enum}"
        after = find_member(source, scope, self.after, wanted)
        if isinstance(after, NotFound):
            return after
        if not isinstance(after, ast.Assign):
            return member_not_found(source, scope, wanted, self.after)
        if isinstance(after.value, ast.Constant) and _is_enum(scope):
            near = candidate(source, after)
            return NotFound(StepOutcome.ANCHOR_MISSING, f"{wanted} whose value can be another one's", (near,))
        value = _value(source, after)
        existing = next((node for node in scope.body if self.name in assigned_names(node)), None)
        if existing is None:
            return insert_after(source, after, f"{self.name} = {value}")
        if isinstance(existing, ast.Assign) and pattern.same(existing.value, after.value):
            return AlreadySo(existing.lineno)
        near = candidate(source, existing)
        expected = f"# in {self.enum}, or no such member at all\n{self.name} = {value}"
        return NotFound(StepOutcome.HALF_UPSTREAMED, f"{self.enum}.{self.name} = {value}", (near,), expected)

    def symbols(self) -> tuple[str, ...]:
        return (f"{self.enum}.{self.after}",)

    def target(self) -> Target:
        return Target(self.enum, statement=f"{self.after} = ...")


def _is_enum(scope: Scope) -> bool:
    """Two members of an Enum with one value are one member under two names."""
    bases = scope.bases if isinstance(scope, ast.ClassDef) else []
    return any(ast.unparse(base).endswith(("Enum", "Flag")) for base in bases)


def _value(source: Source, member: ast.Assign) -> str:
    """The value as it is written, parentheses around it included."""
    text = source.data[source.end_offset(member.targets[-1]) : source.end_offset(member)]
    return text.decode().lstrip(" \t=")
