"""Wheels of a tiny package, environments that hold it, and folders that other users can reach."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from small_wheel import make_wheel
from transaction.world import MODULES

from .places import Place, Uv

NEWER = {**MODULES, "tiny/alpha.py": "import os\n\nvalue = 'old'\nnewer = True\n"}

MakePlace = Callable[..., Place]


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with versions 1.0 and 1.1 of the package."""
    folder = tmp_path_factory.mktemp("wheels")
    make_wheel(folder, "1.0", MODULES, name="tiny")
    make_wheel(folder, "1.1", NEWER, name="tiny")
    return folder


@pytest.fixture
def uv(tmp_path: Path, wheels: Path) -> Uv:
    return Uv(tmp_path / "cache", wheels)


@pytest.fixture
def place(tmp_path: Path) -> MakePlace:
    """``place(where, **options)``: the package in a folder, and a patchset for it."""

    def make(where: Path, **options: object) -> Place:
        made = Place(tmp_path / "patching", options=options, where=where)
        made.base.mkdir(exist_ok=True)
        made.write_patchset()
        return made

    return make


@pytest.fixture
def open_world() -> Iterator[Place]:
    """A package where every user can reach it."""
    base = Path(tempfile.mkdtemp(prefix="ddtree-patch-")).resolve()
    base.chmod(0o755)
    world = Place(base, where=base / "site")
    world.install()
    world.write_patchset()
    yield world
    subprocess.run(["chmod", "-R", "u+rwX", str(base)], check=True)
    shutil.rmtree(base)
