"""One machine, one checkout and one installed SGLang for all recipes; tests work on copies."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .machine import Machine, add_sglang, changed_wheel, checkout, make_machine

VERSION = "0.5.11"
SGLANG = f"--no-deps sglang=={VERSION}"  # what the recipes install in tests: SGLang, without the 2 GB that it needs
PATCHED = "sglang/srt/speculative/spec_info.py"  # a file that the patch changes

MakeEnvironment = Callable[[Path], Path]


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory, wheel: Callable[[str], Path]) -> Machine:
    made = make_machine(tmp_path_factory.mktemp("machine"))
    add_sglang(made, wheel(VERSION))
    return made


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This repository, as somebody else has it; to be read only."""
    return checkout(tmp_path_factory.mktemp("source") / "ddtree-patch")


@pytest.fixture(scope="session")
def other_build(tmp_path_factory: pytest.TempPathFactory, wheel: Callable[[str], Path]) -> Path:
    """A wheel of the same version, in which a place that the patch needs has another name."""
    folder = tmp_path_factory.mktemp("other-build")
    return changed_wheel(wheel(VERSION), folder, PATCHED, b"DFLASH = auto()", b"DRAFT_FLASH = auto()")


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory, machine: Machine) -> Path:
    """A virtual environment with SGLang as pip installs it; to be read only."""
    folder = tmp_path_factory.mktemp("installed")
    environment = machine.environment(folder / "home")
    for command in (
        f"python -m venv --without-pip {folder}/venv",
        f"pip --python {folder}/venv/bin/python install {SGLANG}",
    ):
        subprocess.run(["sh", "-c", command], check=True, capture_output=True, env=environment)
    return folder / "venv"


@pytest.fixture
def environment(installed: Path) -> MakeEnvironment:
    """``environment(folder)``: that environment somewhere else, its files linked. Replace one to edit it."""

    def make(folder: Path) -> Path:
        shutil.copytree(
            installed, folder, symlinks=True, copy_function=lambda old, new: os.link(old, new, follow_symlinks=False)
        )
        return folder

    return make


def site_of(environment: Path) -> Path:
    (found,) = environment.glob("lib/python*/site-packages")
    return found


def edit(environment: Path, path: str = PATCHED) -> None:
    """What somebody does who has no idea of the patch: a line more."""
    file = site_of(environment) / path
    data = file.read_bytes()
    file.unlink()
    file.write_bytes(data + b"\n# mine\n")
