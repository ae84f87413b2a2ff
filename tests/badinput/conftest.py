from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bad_site import Result, Site

MakeSite = Callable[..., Site]


@pytest.fixture
def site(shared_tree: Callable[[str], Path], tmp_path: Path) -> Iterator[MakeSite]:
    """``site(version="0.5.11", name="site")``: a fresh tree of hard links, gone after the test."""
    made: list[Path] = []

    def make(version: str = "0.5.11", name: str = "site") -> Site:
        folder = tmp_path / name
        shutil.copytree(shared_tree(version), folder, copy_function=os.link)
        made.append(folder)
        return Site(folder)

    yield make
    for folder in made:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def benches() -> dict[str, Site]:
    return {}


@pytest.fixture
def bench(
    benches: dict[str, Site], shared_tree: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MakeSite]:
    """``bench(version="0.5.11")``: a tree that many tests share, as they write nothing there but their own edits."""
    used: list[str] = []

    def get(version: str = "0.5.11") -> Site:
        if version not in benches:
            folder = tmp_path_factory.mktemp("bench") / "site"
            shutil.copytree(shared_tree(version), folder, copy_function=os.link)
            benches[version] = Site(folder)
        used.append(version)
        return benches[version]

    yield get
    for version in used:
        benches[version].put_back(shared_tree(version))


@pytest.fixture
def run(run_here: Callable[..., Result]) -> Callable[..., Result]:
    """``run(site, *args, shared=())``: one command on a site; ``shared`` are options before the command."""

    def at(site: Site, *args: object, shared: tuple[object, ...] = ()) -> Result:
        return run_here("--root", site.folder, *map(str, shared), *map(str, args))

    return at
