"""The uv project, synchronised by the real uv, offline: its cache stays as it was, what is wiped is patched anew."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from environments.places import inodes

from .conftest import PATCHED, edit, site_of
from .machine import RECIPES, Machine, stand_ins

pytestmark = [pytest.mark.wheels, pytest.mark.slow]


@dataclass(frozen=True)
class Project:
    folder: Path
    variables: Mapping[str, str]

    @property
    def site(self) -> Path:
        return site_of(self.folder / ".venv")

    @property
    def cache(self) -> Path:
        return Path(self.variables["UV_CACHE_DIR"])

    def run(self, *command: str | Path) -> tuple[int, str]:
        done = subprocess.run(
            list(map(str, command)),
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        return done.returncode, done.stdout

    def synchronise(self, *options: str) -> None:
        code, said = self.run(self.folder / "sync.sh", *options)
        assert code == 0, said

    def status(self) -> tuple[int, str]:
        """The exit code of `status --check`, and the word for what is there."""
        code, said = self.run("uv", "run", "--no-sync", "ddtree-patch", "-q", "status", "--check")
        return code, said.split("status: ")[1].split()[0]


@pytest.fixture
def project(tmp_path: Path, machine: Machine, source: Path) -> Project:
    """SGLang's own wheel is installed; of what it requires, names and versions alone."""
    machine.lend("uv")
    folder = tmp_path / "serving"
    shutil.copytree(RECIPES / "uv", folder)
    shutil.copytree(source, folder / "ddtree-patch")
    stand_ins(machine, tmp_path / "stand-ins")
    variables = machine.environment(tmp_path / "home")
    variables["UV_FIND_LINKS"] += f",{tmp_path / 'stand-ins'}"
    return Project(folder, {**variables, "TIER": "static"})


def shared(project: Project) -> Mapping[str, object]:
    """What lies in uv's cache of SGLang's files."""
    return {name: facts for name, facts in inodes(project.cache).items() if "/sglang/" in name}


def test_patched_again_after_every_synchronisation_that_wipes_it(project: Project) -> None:
    code, said = project.run("uv", "sync")
    assert code == 0, said
    assert project.status() == (3, "clean")
    assert os.stat(project.site / PATCHED).st_nlink > 1, "uv did not link: this test would show nothing"
    cache = shared(project)
    assert len(cache) > 1000

    project.synchronise("--locked")
    assert project.status() == (0, "applied")
    assert project.run("uv", "sync", "--locked")[0] == 0 and project.status() == (0, "applied")
    assert shared(project) == cache

    assert project.run("uv", "sync", "--locked", "--reinstall-package", "sglang")[0] == 0
    assert project.status() == (3, "wiped")
    project.synchronise("--locked")
    assert project.status() == (0, "applied") and shared(project) == cache

    edit(project.folder / ".venv")
    code, said = project.run(project.folder / "sync.sh", "--locked")
    assert code == 4 and PATCHED in said
    assert project.status() == (3, "drifted") and shared(project) == cache
