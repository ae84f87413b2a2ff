"""One world a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from .world import MakeWorld, World


@pytest.fixture
def make_world(tmp_path: Path) -> MakeWorld:
    """``make_world(name)``: a package installed afresh, and a patchset that was not applied yet."""

    def make(name: str) -> World:
        world = World(tmp_path.resolve() / name)
        world.install()
        world.write_patchset()
        return world

    return make


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    return make_world("world")
