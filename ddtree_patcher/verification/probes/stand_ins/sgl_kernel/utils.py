"""Stand-in: see the package."""

from ._kernels import kernel as __getattr__

__all__ = ["__getattr__", "is_arch_support_pdl"]


def is_arch_support_pdl() -> bool:
    """No GPU, hence no programmatic dependent launch."""
    return False
