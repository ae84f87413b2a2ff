"""``insert_before``: statements in front of a statement."""

from __future__ import annotations

from dataclasses import dataclass

from .anchors import Anchor
from .insertion import insert_at, insert_before
from .result import Location
from .source import Source
from .target import Target


@dataclass(frozen=True, slots=True)
class InsertBefore:
    """Put ``code`` before the one statement that ``anchor`` describes, and before that statement's comment."""

    path: str  # the file, relative to the folder that holds the package
    anchor: Anchor  # the statement, on lines of its own
    code: str  # the statements to insert, at column 0

    def locate(self, source: Source) -> Location:
        return insert_at(source, self.anchor, self.code, insert_before)

    def symbols(self) -> tuple[str, ...]:
        return (self.anchor.scope,)

    def target(self) -> Target:
        return self.anchor.target()
