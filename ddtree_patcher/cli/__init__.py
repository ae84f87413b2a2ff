"""The command line: one click command a file, loaded when it is used."""

from __future__ import annotations

from .app import main

__all__ = ["main"]
