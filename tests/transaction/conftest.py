"""One world a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from .world import MakeWorld, World


@pytest.fixture
def make_world(tmp_path: Path) -> MakeWorld:
    """``make_world(name)``: a package installed afresh, and a patchset that was not applied yet."""

    def make(name: str) -> World:
        return World.installed(tmp_path.resolve() / name)

    return make


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    return make_world("world")
