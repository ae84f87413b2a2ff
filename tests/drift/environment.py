"""A virtual environment that pip takes care of, with the tiny package in it; remedies, carried out as they read."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from small_wheel import make_wheel
from transaction.world import MODULES, World

VERSIONS = ("0.9", "1.0", "2.0")
STATE = ".ddtree-patch"
COMMANDS = {
    "status": ("status",),
    "doctor": ("doctor",),
    "verify": ("verify", "--tier", "static"),
    "plan": ("plan",),
    "apply": ("apply", "--verify", "static"),
    "revert": ("revert",),
}


@dataclass
class Environment(World):
    """``base`` holds the virtual environment, the patchset and the wheels."""

    cli: Callable[..., Any] = field(kw_only=True)
    keep: Path = field(kw_only=True)

    @property
    def site(self) -> Path:
        (found,) = self.base.glob("venv/lib/python*/site-packages")
        return found

    @property
    def wheels(self) -> Path:
        return self.base / "wheels"

    def prepare(self) -> None:
        """The wheels of three releases, and a patchset that carries the file that it adds."""
        for version in VERSIONS:
            release = {"tiny/version.py": f"version = {version!r}\n"} if version != "1.0" else {}
            make_wheel(self.wheels, version, {**MODULES, **release}, name="tiny")
        self.write_patchset()
        (self.patchset / "extra.py").write_bytes(b"y = 2\n")

    def pip(self, *words: str) -> None:
        python = self.base / "venv/bin/python"
        options = ("--quiet", "--no-input", "--disable-pip-version-check", "--no-index", "--no-cache-dir")
        offered = ("--find-links", str(self.wheels)) if words[0] != "uninstall" else ()
        command = [str(python), "-m", "pip", words[0], *options[: 5 if offered else 3], *offered, *words[1:]]
        subprocess.run(command, check=True, cwd=self.keep, capture_output=True, text=True)

    def own(self) -> list[Path]:
        """Everything in site-packages but pip itself."""
        return [
            item for item in sorted(self.site.iterdir()) if not item.name.startswith(("pip", "setuptools", "_dist"))
        ]

    def have(self, version: str) -> None:
        """A fresh installation of a release, by pip the first time and as pip left it from then on."""
        self.put_back(self.base / f"installed-{version}") if (self.base / f"installed-{version}").exists() else (
            self._install(version)
        )

    def _install(self, version: str) -> None:
        self.put_back(None)
        self.pip("install", f"tiny=={version}")
        self.take_down(self.base / f"installed-{version}")

    def take_down(self, folder: Path) -> None:
        folder.mkdir()
        for item in self.own():
            copy(item, folder / item.name)

    def put_back(self, folder: Path | None) -> None:
        for item in self.own():
            shutil.rmtree(item) if item.is_dir() else item.unlink()
        for item in sorted(folder.iterdir()) if folder else ():
            copy(item, self.site / item.name)

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Whatever happens to the package in there is undone."""
        folder = self.keep / "undone"
        self.take_down(folder)
        yield
        self.put_back(folder)
        shutil.rmtree(folder)

    def run(self, command: str, *options: object) -> Any:
        words = COMMANDS.get(command, (command,))
        return self.cli("--root", self.site, "--patchset", self.patchset, *words, *map(str, options))

    def carry_out(self, remedy: str) -> None:
        """Every command that a remedy names, in its order. ``FILE`` is the wheel that it told to fetch."""
        found = re.findall(r"`ddtree-patch ([^`]+)`|\(pip ([^)]+)\)", remedy)
        assert found, f"no command in: {remedy}"
        for tool, pip in found:
            if pip:
                self.pip(*shlex.split(pip))
                continue
            (wheel,) = self.keep.glob("*.whl") if "FILE" in tool else (Path(),)
            words = [str(wheel) if word == "FILE" else word for word in shlex.split(tool)]
            result = self.run(words[0], *words[1:])
            assert result.exit_code == 0, result.stdout + result.stderr


def copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target)
