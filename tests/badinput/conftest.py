from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from bad_site import Result, Site

MakeSite = Callable[..., Site]


@pytest.fixture
def site(shared_tree: Callable[[str], Path], tmp_path: Path) -> MakeSite:
    """``site(version="0.5.11", name="site")``: a fresh tree of hard links."""

    def make(version: str = "0.5.11", name: str = "site") -> Site:
        shutil.copytree(shared_tree(version), tmp_path / name, copy_function=os.link)
        return Site(tmp_path / name)

    return make


@pytest.fixture
def run(run_here: Callable[..., Result]) -> Callable[..., Result]:
    """``run(site, *args, shared=())``: one command on a site; ``shared`` are options before the command."""

    def at(site: Site, *args: object, shared: tuple[object, ...] = ()) -> Result:
        return run_here("--root", site.folder, *map(str, shared), *map(str, args))

    return at
