"""Small assertions that say what was found instead."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable


def expect(holder: object, **values: object) -> None:
    """Each attribute has exactly this value, of this type."""
    for name, value in values.items():
        found = getattr(holder, name)
        assert found == value and type(found) is type(value), f"{name} is {found!r}, not {value!r}"


def refused(action: Callable[[], object], *words: str) -> str:
    """What the `ValueError` says, which must hold every word."""
    return raises(ValueError, action, *words)


def raises(kind: type[Exception], action: Callable[[], object], *words: str) -> str:
    try:
        action()
    except kind as error:
        return _says(str(error), words)
    raise AssertionError(f"no {kind.__name__}")


def refused_by_argparse(action: Callable[[], object], *words: str) -> str:
    """The last line of what the parser prints."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            action()
    except SystemExit:
        return _says(said.getvalue().strip().splitlines()[-1], words)
    raise AssertionError("the parser accepted it")


def _says(message: str, words: tuple[str, ...]) -> str:
    for word in words:
        assert word in message, f"{word!r} is not in the message: {message}"
    return message
