"""What the tests stand on: real wheels, trees unpacked from them, the command line, and an interpreter with SGLang's
dependencies.

Wheels come from ``.cache/wheels`` (``DDTREE_TEST_WHEELS`` names another folder) and are fetched where they are missing;
a wheel that cannot be had is an error, never a skip.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

import fetch_wheels
import wheel_tree
from ddtree_patcher.verification.probes_runner import BYTECODE_VARIABLE

REPOSITORY = Path(__file__).resolve().parent.parent
STATE_VARIABLE = "DDTREE_PATCH_STATE_DIR"
OURS = (STATE_VARIABLE, "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY")  # what the tool reads, and a test sets itself
SHARED_TREES = "sglang-trees"  # in the folder of a test session, for all of its workers
BYTECODE = "sglang-bytecode"  # likewise
WATCHED = "sglang/srt/"  # where the files lie that the patchset, and hence a test, may edit


@dataclass(frozen=True)
class Result:
    """How one run of the command line ended."""

    exit_code: int
    stdout: str
    stderr: str

    @cached_property
    def json(self) -> Any:
        """The report. Fails where standard output is not exactly one JSON object, or not as its schema says."""
        try:
            value = json.loads(self.stdout)
        except ValueError:
            pytest.fail(f"not JSON: {self.stdout}\n{self.stderr}")
        import schemas  # late: what it needs is not there in the interpreter that has torch

        if found := schemas.complaints(value):
            pytest.fail("the report is not as docs/schema says:\n" + "\n".join(found))
        return value

    @property
    def codes(self) -> list[str]:
        """The words of the diagnostics, in order."""
        return [item["code"] for item in self.json["diagnostics"]]

    @property
    def outcomes(self) -> dict[str, str]:
        """Step → outcome."""
        return {step["id"]: step["outcome"] for step in self.json["steps"]}

    def expect(self, exit_code: int) -> Result:
        """Itself, where it ended so."""
        assert self.exit_code == exit_code, f"exit code {self.exit_code}\n{self.stdout}\n{self.stderr}"
        return self


pytest_plugins = ("capabilities", "figures")

# The same examples in every run, and no verdict on how fast a busy machine is.
settings.register_profile("project", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("project")

RunCli = Callable[..., Result]
MakeTree = Callable[..., Path]


@pytest.fixture(scope="session")
def wheel() -> Callable[[str], Path]:
    """``wheel(version)``: the path of SGLang's wheel of that version, fetched where it is missing."""
    folder = Path(os.environ.get("DDTREE_TEST_WHEELS") or fetch_wheels.WHEELS)

    def get(version: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock"):  # one worker downloads, the others wait
            return fetch_wheels.fetch(version, folder)

    return get


def _of_all_workers(factory: pytest.TempPathFactory) -> Path:
    """The folder of a test session that its workers share."""
    folder = factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session", autouse=True)
def _sglang_is_compiled_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """For every process that a test starts and imports SGLang in: releases have most of their files in common."""
    folder = _of_all_workers(tmp_path_factory) / BYTECODE
    folder.mkdir(exist_ok=True)
    os.environ[BYTECODE_VARIABLE] = str(folder)


@pytest.fixture(scope="session")
def shared_tree(wheel: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``shared_tree(version)``: one unpacked wheel for the whole session, to be read only."""
    trees = _of_all_workers(tmp_path_factory) / SHARED_TREES

    def get(version: str) -> Path:
        trees.mkdir(exist_ok=True)
        folder = trees / version
        with FileLock(trees / f"{version}.lock"):
            if not folder.is_dir():
                wheel_tree.unpack(wheel(version), trees / f"{version}.part")
                (trees / f"{version}.part").rename(folder)
        return folder

    return get


@pytest.fixture
def tree(shared_tree: Callable[[str], Path], tmp_path: Path) -> MakeTree:
    """``tree(version, name="site")``: the test's own fresh tree, the folder that holds ``sglang/`` and its dist-info.

    Files that a test may want to edit (``sglang/srt/**.py`` and the dist-info) are copies; all others are hard links
    to the session's tree, which cost no time. Edit one of those by replacing it, never in place.
    """

    def make(version: str = "0.5.11", name: str = "site") -> Path:
        source, folder = shared_tree(version), tmp_path / name

        def put(file: str, target: str) -> None:
            inside = Path(file).relative_to(source).as_posix()
            editable = inside.startswith(WATCHED) and inside.endswith(".py")
            if editable or ".dist-info/" in inside:
                shutil.copy2(file, target)
            else:
                os.link(file, target)

        shutil.copytree(source, folder, copy_function=put)
        return folder

    return make


@pytest.fixture(scope="session")
def run_cli() -> RunCli:
    """``run_cli(*args, env={}, cwd=None)``: the console script with ``--format json``, in a process of its own."""
    program = Path(sys.executable).parent / "ddtree-patch"
    if not program.is_file():
        pytest.fail(f"{program} is not there: install the tool beside this Python (pip install -e '.[dev]')")

    def run(*args: str | os.PathLike[str], env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Result:
        command = [str(program), "--format", "json", *map(str, args)]
        done = subprocess.run(
            command,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            env={**_clean_environment(), **(env or {})},
            cwd=cwd,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def run_here(monkeypatch: pytest.MonkeyPatch) -> RunCli:
    """``run_here(*args)``: the same command line inside this process: faster, and what it calls can be replaced."""
    from ddtree_patcher.cli import main

    for name in OURS:
        monkeypatch.delenv(name, raising=False)

    def run(*args: str | os.PathLike[str]) -> Result:
        code: object = 0
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as errors:
            try:
                main(["--format", "json", *map(str, args)], prog_name="ddtree-patch")
            except SystemExit as end:
                code = end.code
        assert isinstance(code, int)
        return Result(code, out.getvalue(), errors.getvalue())

    return run


@pytest.fixture(scope="session")
def sglang_python() -> str:
    """An interpreter with SGLang's CPU dependencies, and without SGLang."""
    given = os.environ.get("DDTREE_TEST_SGLANG_PYTHON", "")
    path = Path(given) if given else REPOSITORY / ".venv-sglang" / "bin" / "python"
    if not path.is_file():
        pytest.fail(f"{path} is not there: `make .venv-sglang` makes it, DDTREE_TEST_SGLANG_PYTHON names another")
    return os.path.abspath(path)


def _clean_environment() -> Mapping[str, str]:
    return {name: value for name, value in os.environ.items() if name not in (*OURS, "PYTHONPATH")}


def pytest_sessionfinish(session: pytest.Session) -> None:
    """The session's trees are large: they do not outlive it, nor does what was compiled of them."""
    if not hasattr(session.config, "workerinput"):
        factory = getattr(session.config, "_tmp_path_factory", None)
        if factory is not None:
            for name in (SHARED_TREES, BYTECODE):
                shutil.rmtree(factory.getbasetemp() / name, ignore_errors=True)
