"""Stand-in: see the package."""

from ._kernels import kernel as __getattr__

__all__ = ["__getattr__"]
