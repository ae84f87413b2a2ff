"""Names that differ only in case from those of files that are added: on many file systems they are one and the same."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from ..model import Diagnostic, Severity


def lookalikes(folder: Path, added: Iterable[str]) -> Iterator[Diagnostic]:
    """An error for every file or folder that an added one, or a folder that is made for it, could be taken for."""
    told: set[str] = set()
    for path in added:
        made = [part for part in PurePosixPath(path).parents if not (folder / part).is_dir()]
        for part in (*reversed(made), PurePosixPath(path)):
            for name in _others(folder / part):
                twin = part.with_name(name).as_posix()
                if twin not in told:
                    told.add(twin)
                    yield Diagnostic(
                        "lookalike",
                        Severity.ERROR,
                        f"{twin} differs only in case from {part}, which this patchset adds",
                        "Where case does not count in names (macOS, some mounts), one would replace the other.",
                        "Move that file away.",
                        path=twin,
                    )


def _others(path: Path) -> list[str]:
    """What lies beside ``path`` with its name in other letters."""
    wanted = path.name.casefold()
    try:
        return sorted(name for name in os.listdir(path.parent) if name != path.name and name.casefold() == wanted)
    except OSError:
        return []
