"""Stand-in for the number formats that quantisation code names while it is imported."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ScalarType:
    """A number format, told apart by its name alone."""

    name: str


class _ScalarTypes:
    def __getattr__(self, name: str) -> ScalarType:
        if name.startswith("__"):
            raise AttributeError(name)
        return ScalarType(name)


scalar_types = _ScalarTypes()
