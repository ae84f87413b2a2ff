"""Files that the user asked for by name, outside every installation."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .errors import UsageError


def write_output(path: Path, data: bytes) -> None:
    """Write such a file; refuses a place that cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise _refused(path, error) from error


def append_output(path: Path, data: bytes) -> None:
    """Add to the end of such a file; refuses a place that cannot be written."""
    try:
        with open(path, "ab") as file:
            file.write(data)
    except OSError as error:
        raise _refused(path, error) from error


def obstacle(path: Path) -> str:
    """Why such a file could not be written, as far as can be known without touching it; empty where it could."""
    if str(path) == "-":
        return "standard output is the report's own: name a file"
    if path.is_dir():
        return "it is a folder"
    if path.exists():
        return "" if os.access(path, os.W_OK) else "this user may not write to it"
    if not path.parent.is_dir():
        return "there is no such folder"
    return "" if os.access(path.parent, os.W_OK | os.X_OK) else "this user may not write to its folder"


class Lines:
    """A file to which lines are added while a command runs. What goes wrong with it never disturbs the command."""

    def __init__(self, path: str) -> None:
        """``-`` is standard error. Refuses a place that cannot be written, and a pipe that nobody reads."""
        self.lost = ""  # why lines are missing at its end; empty while none are
        self._owned = path != "-"
        try:
            self._number = _opened(path) if self._owned else 2
        except OSError as error:
            raise _refused(Path(path), error) from error

    def add(self, line: bytes) -> None:
        """The line is there when this returns, unless ``lost`` says why not."""
        while line and not self.lost:
            try:
                line = line[os.write(self._number, line) :]
            except OSError as error:
                self.lost = str(error.strerror)

    def close(self) -> None:
        if self._owned:
            os.close(self._number)


def _opened(path: str) -> int:
    """Without waiting for a reader, where it is a pipe; afterwards a reader that is slow is waited for."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if stat.S_ISFIFO(os.fstat(number).st_mode):
        os.set_blocking(number, True)
    return number


def _refused(path: Path, error: OSError) -> UsageError:
    return UsageError(f"{path} cannot be written: {error.strerror}", remedy="Name another file.")
