"""``add_enum_member``: one more member of an enum."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ..model import StepOutcome
from . import pattern
from .anchors import assigned_names, find_scope
from .insertion import insert_after
from .members import member_not_found
from .result import AlreadySo, Candidate, Location, NotFound
from .source import Source


@dataclass(frozen=True, slots=True)
class AddEnumMember:
    """Give ``enum`` a member ``name`` behind the member ``after``, with a value written like that one's."""

    path: str
    enum: str
    name: str
    after: str

    def locate(self, source: Source) -> Location:
        scope = find_scope(source, self.enum)
        if isinstance(scope, NotFound):
            return scope
        members = {name: node for node in scope.body for name in assigned_names(node)}
        after = members.get(self.after)
        if after is None or not isinstance(after, ast.Assign):
            return member_not_found(source, scope, f"member {self.after} of {self.enum}", self.after)
        value = source.data[
            source.offset(after.value.lineno, after.value.col_offset) : source.end_offset(after.value)
        ].decode()
        existing = members.get(self.name)
        if existing is None:
            return insert_after(source, after, f"{self.name} = {value}")
        if isinstance(existing, ast.Assign) and pattern.same(existing.value, after.value):
            return AlreadySo(existing.lineno)
        near = Candidate(existing.lineno, source.line(existing.lineno).decode().strip())
        return NotFound(StepOutcome.HALF_UPSTREAMED, f"{self.enum}.{self.name} = {value}", (near,))

    def symbols(self) -> tuple[str, ...]:
        return (f"{self.enum}.{self.after}",)
