"""Functions that exist and refuse to run."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn


def refusing(name: str) -> Callable[..., NoReturn]:
    """A function of that name that says why it does nothing."""

    def refuse(*args: object, **kwargs: object) -> NoReturn:
        raise RuntimeError(f"torchvision.{name} was called, but only a stand-in for torchvision is here")

    refuse.__name__ = refuse.__qualname__ = name.rpartition(".")[2]
    return refuse
