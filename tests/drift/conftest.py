"""One virtual environment for all tests of a worker: each test begins with a fresh installation in it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .environment import Environment


@pytest.fixture(scope="session")
def shared_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("drift").resolve()
    subprocess.run([sys.executable, "-m", "venv", str(base / "venv")], check=True)
    Environment(base, cli=print, keep=base).prepare()
    return base


@pytest.fixture
def environment(shared_base: Path, run_here: Callable[..., Any], tmp_path: Path) -> Environment:
    environment = Environment(shared_base, cli=run_here, keep=tmp_path)
    environment.have("1.0")
    return environment
