"""``add_field``: one or more fields of a class."""

from __future__ import annotations

from dataclasses import dataclass

from .members import add_members
from .result import Location
from .source import Source
from .target import Target


@dataclass(frozen=True, slots=True)
class AddField:
    """Add the fields of ``code`` to ``cls``, behind its member ``after``."""

    path: str  # the file, relative to the folder that holds the package
    cls: str  # the class, as a dotted name
    code: str  # the assignments or annotations, at column 0
    after: str  # the member that they go behind: a field, a method, or a name that is imported in the class

    def locate(self, source: Source) -> Location:
        return add_members(source, self.cls, self.code, self.after, blank_lines=0)

    def symbols(self) -> tuple[str, ...]:
        return (f"{self.cls}.{self.after}",)

    def target(self) -> Target:
        return Target(self.cls, note=f"a member {self.after}")
