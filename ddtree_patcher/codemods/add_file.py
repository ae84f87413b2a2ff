"""``add_file``: a module that the package does not have."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AddFile:
    """Add a whole file; an existing one with other content is a conflict."""

    path: str
    content: bytes

    def symbols(self) -> tuple[str, ...]:
        return ()
