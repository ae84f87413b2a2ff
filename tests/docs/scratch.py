"""Where the commands of the documents are run: a virtual environment with a real SGLang, and a folder to work in.

The documents say ``/srv/venv`` for the environment, and ``ddtree-patch`` for the tool beside this Python, whose default
installation is that environment's. Nothing is fetched: wheels lie where ``matrix`` looks for them.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import taught
from pages import ROOT

VERSION = "0.5.18"
DOCUMENTED = "/srv/venv"


@dataclass(frozen=True)
class Scratch:
    """One block's surroundings."""

    folder: Path
    trees: Callable[[str], Path]  # an unpacked release, to be read only
    wheels: Callable[[str], Path]

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def venv(self) -> Path:
        return self.folder / "venv"

    @property
    def site(self) -> Path:
        (found,) = self.venv.glob("lib/python3*/site-packages")
        return found

    def clean(self) -> None:
        """An environment with SGLang as its wheel has it; ``site`` is its site-packages, and the wheel lies beside."""
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.venv)], check=True)
        shutil.copytree(self.trees(VERSION), self.site, copy_function=os.link, dirs_exist_ok=True)
        self.work.mkdir()
        (self.work / "site").symlink_to(self.site)
        (self.work / self.wheels(VERSION).name).symlink_to(self.wheels(VERSION))
        cache = self.folder / "cache" / "ddtree-patch"
        cache.mkdir(parents=True)
        (cache / "wheels").symlink_to(self.wheels(VERSION).parent)
        self._command()

    def applied(self) -> None:
        """The same, patched."""
        self.clean()
        self.run("ddtree-patch -q apply --verify none").check_returncode()

    def state_lost(self) -> None:
        """Patched, and nobody has the pristine bytes any more."""
        self.applied()
        shutil.rmtree(self.site / ".ddtree-patch")

    def one_shape(self) -> None:
        """A clean environment, and the patchset that is taught after its first step, in ``acme_grammar``."""
        self.clean()
        taught.save(self.work / "acme_grammar", taught.one_shape())

    def two_shapes(self) -> None:
        """The same after its last step, applied."""
        self.clean()
        taught.save(self.work / "acme_grammar", taught.two_shapes())

    def repository(self) -> None:
        """A clean environment, and the repository's own files in the folder to work in."""
        self.clean()
        for path in ROOT.iterdir():
            if not path.name.startswith("."):
                (self.work / path.name).symlink_to(path)

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        """One line of a document, by the shell."""
        return subprocess.run(
            ["bash", "-c", line.replace(DOCUMENTED, str(self.venv))],
            cwd=self.work,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    def _command(self) -> None:
        program = shlex.quote(str(Path(sys.executable).parent / "ddtree-patch"))
        command = self.folder / "bin" / "ddtree-patch"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec {program} --python {self.venv / "bin" / "python"} "$@"\n')
        command.chmod(0o755)

    def _environment(self) -> Mapping[str, str]:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("DDTREE_", "PYTHON", "GITHUB"))
        }
        path = os.pathsep.join([str(self.folder / "bin"), str(self.venv / "bin"), os.environ["PATH"]])
        cache = str(self.folder / "cache")
        return {**kept, "PATH": path, "XDG_CACHE_HOME": cache, "COLUMNS": "100", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
