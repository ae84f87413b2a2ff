"""Where a package really lies, and whether a symbolic link leads from its environment to there.

Everything is done to the real files: locks, state and digests of one physical copy are the same by whatever path it is
reached. A link that stays in its environment (``lib64``, an environment moved behind a link) is nothing to speak of.
One that leads out shares the files with whoever else uses them (nemo-platform #1056, conda #1535).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from .errors import EnvironmentRefused

OWN_COPY = "Give this environment its own copy of the package (uv: --link-mode copy; conda: always_copy)"


@dataclass(frozen=True, slots=True)
class Place:
    """The real folder that holds a package."""

    folder: Path
    linked_from: str = ""  # the path that leads there by a link out of its environment; empty where none does


def real_place(found: Path, package: str, prefix: str = "") -> Place:
    """Where the package folder that was found as ``found`` lies.

    Its environment is the ``prefix`` of the interpreter where ``found`` lies below that, else the folder that holds it.
    Refuses a folder whose real name is not the package's: at its real path it is another package, or none.
    """
    found = Path(os.path.abspath(found))
    real = Path(os.path.realpath(found))
    if real.name != package:
        raise EnvironmentRefused(
            f"{found} is a symbolic link to {real}, where it is no package named {package}",
            remedy=f"{OWN_COPY}, or name the folder {package} there.",
        )
    home = prefix if prefix and found.is_relative_to(prefix) else found.parent
    return Place(real.parent, "" if real.is_relative_to(os.path.realpath(home)) else str(found))
