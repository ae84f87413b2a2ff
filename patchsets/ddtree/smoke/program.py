"""The smoke tier: every check, in order."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from .arguments import CONFIGURATION
from .models import Models
from .process import says_its_patchset
from .refusals import refusals
from .wiring import ALGORITHM, MODULES


def checks() -> Iterator[tuple[str, Callable[[], str]]]:
    yield from ALGORITHM.items()
    with tempfile.TemporaryDirectory() as folder:
        models = Models(Path(folder))
        for name, check in CONFIGURATION.items():
            yield f"arguments:{name}", partial(check, models)
        for name, refusal in refusals(models):
            yield f"refused:{name}", refusal
    yield from MODULES.items()
    yield "process:spawned-scheduler", says_its_patchset
