"""Kernels that exist and refuse to run."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn


def kernel(name: str) -> Callable[..., NoReturn]:
    """A module's ``__getattr__``: a function of that name that says why it does nothing."""
    if name.startswith("__"):
        raise AttributeError(name)

    def refuse(*args: object, **kwargs: object) -> NoReturn:
        raise RuntimeError(f"sgl_kernel.{name} was called, but only a stand-in for sgl_kernel is here: it needs a GPU")

    refuse.__name__ = refuse.__qualname__ = name
    return refuse
