"""Stand-in: see the package."""

from . import functional

__all__ = ["functional"]
