"""``add_class``: one more class at the end of a module."""

from __future__ import annotations

from dataclasses import dataclass

from .insertion import append
from .members import presence
from .result import Location
from .source import Source
from .target import Target


@dataclass(frozen=True, slots=True)
class AddClass:
    """Append the class that ``code`` defines; ``needs`` are names of the module that its text uses."""

    path: str  # the file, relative to the folder that holds the package
    code: str  # the whole class, decorators included, at column 0
    needs: tuple[str, ...] = ()  # dotted names of the module that its text uses: where one changes, the step is named

    def locate(self, source: Source) -> Location:
        there = presence(source, source.tree, self.code)
        return append(source, self.code) if there is None else there

    def symbols(self) -> tuple[str, ...]:
        return self.needs

    def target(self) -> Target:
        return Target(note="the end of the module")
