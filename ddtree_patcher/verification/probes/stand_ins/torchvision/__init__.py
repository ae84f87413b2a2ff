"""Stands in for torchvision where it cannot be imported (missing, or built for another torch).

It holds only what SGLang and transformers import before they touch an image. The functions refuse to run.
"""

from . import io, transforms

__all__ = ["io", "transforms"]
__version__ = "0.0.0"
