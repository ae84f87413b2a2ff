"""Packages that real installers put there, looked at and patched as other users and through other paths."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pickle
import pkgutil
import stat
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import ddtree_patcher
from ddtree_patcher.errors import PatchError
from ddtree_patcher.model import Report
from ddtree_patcher.operations import inspecting
from ddtree_patcher.operations.session import Options, Session
from transaction.world import World

NOBODY = 65534  # a user to whom nothing of ours belongs


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    text: str  # the report's outcome, or all that a refusal says
    diagnostics: tuple[tuple[str, str], ...] = ()  # code, summary

    @property
    def codes(self) -> list[str]:
        return [code for code, _ in self.diagnostics]


def ended(work: Callable[[], Report]) -> Ended:
    """Run a command to its end, as the command line does."""
    try:
        report = work()
    except PatchError as error:
        said = tuple((item.code, item.summary) for item in error.diagnostics())
        assert error.remedy or said, error
        return Ended(int(error.exit_code), f"{error.summary} {error.detail} {error.remedy}", said)
    said = tuple((item.code, f"{item.summary} {item.detail} {item.remedy}") for item in report.diagnostics)
    return Ended(int(report.exit_code), report.outcome, said)


@dataclass
class Place(World):
    """A world whose package lies in ``where``. ``options`` go before those that a world has."""

    where: Path = field(default_factory=Path)

    @property
    def site(self) -> Path:
        return self.where

    def session(self) -> Session:
        self.base.mkdir(exist_ok=True)
        return Session(Options(**{"root": str(self.where), "patchset": str(self.patchset), **self.options}))  # type: ignore[arg-type]

    def doctor(self) -> Report:
        return inspecting.doctor(self.session())


def inodes(folder: Path) -> Mapping[str, tuple[bytes, int, int, int]]:
    """Every file below a folder: bytes, mode, inode and time."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            status = path.stat()
            facts = (stat.S_IMODE(status.st_mode), status.st_ino, status.st_mtime_ns)
            found[path.relative_to(folder).as_posix()] = (path.read_bytes(), *facts)
    return found


def imports(python: Path, *modules: str) -> list[bool]:
    """Whether an interpreter can import each module, however little of it is there."""
    program = (
        "import importlib.util, sys\nfor name in sys.argv[1:]:\n try: print(bool(importlib.util.find_spec(name)))\n"
    )
    program += " except ModuleNotFoundError: print(False)\n"
    command = [str(python), "-c", program, *modules]
    done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8", cwd=python.parent)
    return [line == "True" for line in done.stdout.split()]


@dataclass(frozen=True)
class Uv:
    """uv with a cache of its own, which takes wheels from one folder and never the network."""

    cache: Path
    wheels: Path

    def __call__(self, *arguments: str | Path) -> None:
        command = [sys.executable, "-m", "uv", "--quiet", "--offline", "--no-config", "--cache-dir", str(self.cache)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
        done = subprocess.run(
            [*command, *map(str, arguments)], capture_output=True, encoding="utf-8", env=environment, check=False
        )
        assert done.returncode == 0, done.stderr

    def environment(self, folder: Path) -> Path:
        """A new virtual environment; returns its interpreter."""
        self("venv", "--python", sys.executable, folder)
        return folder / "bin/python"

    def install(self, python: Path, what: str = "tiny==1.0", *options: str, mode: str = "hardlink") -> Path:
        """Returns the folder that holds the package."""
        source = ("--no-index", "--find-links", self.wheels)
        self("pip", "install", "--python", python, "--link-mode", mode, *source, *options, what)
        return site_of(python)


def pip(*arguments: str | Path, python: Path | str = sys.executable) -> None:
    """pip of the environment that runs the tests, run by another interpreter for that one's packages."""
    found = importlib.util.find_spec("pip")
    assert found and found.origin, "the environment that runs the tests has no pip"
    with tempfile.TemporaryDirectory() as alone:
        (Path(alone) / "pip").symlink_to(Path(found.origin).parent)
        command = [str(python), "-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check"]
        environment = {
            **os.environ,
            "PYTHONPATH": alone,
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_ROOT_USER_ACTION": "ignore",
        }
        done = subprocess.run(
            [*command, *map(str, arguments)], capture_output=True, encoding="utf-8", env=environment, check=False
        )
    assert done.returncode == 0, done.stderr


def site_of(python: Path) -> Path:
    """The site-packages of a virtual environment, by its real path."""
    (found,) = python.parent.parent.glob("lib/python*/site-packages")
    return found.resolve()


def as_user(user: int, work: Callable[[], Any]) -> Any:
    """What ``work`` returns in a child process of another user; as root only: others run it as themselves.

    A fork, as the other user may not be able to read the interpreter and this repository.
    """
    for module in pkgutil.walk_packages(ddtree_patcher.__path__, "ddtree_patcher."):
        if ".probes." not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
            answer = (True, work())
        except BaseException:
            answer = (False, traceback.format_exc())
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(answer, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    good, answer = pickle.loads(data)
    assert good, answer
    return answer
