"""``add_file``: a module that the package does not have."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AddFile:
    """Add a whole file; an existing one with other content is a conflict."""

    path: str  # the file, relative to the folder that holds the package
    content: bytes  # all of it, byte for byte

    def symbols(self) -> tuple[str, ...]:
        return ()
