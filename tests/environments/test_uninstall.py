"""pip and uv on a patched tree: they know nothing of the patch, and leave nothing of it that could be imported."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from ddtree_patcher.model import Tier
from ddtree_patcher.operations.inspecting import status
from transaction.world import ADDED, CHANGED, MODULES, RECORD

from .conftest import NEWER, MakePlace
from .places import Place, Uv, ended, imports, pip, site_of

OURS = "tiny.made.deep.extra"


@dataclass(frozen=True)
class Installer:
    """pip or uv, on one environment."""

    tool: str
    python: Path
    uv: Uv

    def install(self, version: str, *options: str) -> None:
        if self.tool == "pip":
            source = ("--no-index", "--find-links", self.uv.wheels)
            pip("install", *source, *options, f"tiny=={version}", python=self.python)
        else:
            given = [option.replace("--force-reinstall", "--reinstall") for option in options]
            self.uv.install(self.python, f"tiny=={version}", *given)

    def uninstall(self) -> None:
        if self.tool == "pip":
            pip("uninstall", "--yes", "tiny", python=self.python)
        else:
            self.uv("pip", "uninstall", "--python", self.python, "tiny")

    def run(self, *flags: str) -> None:
        """Use what is installed, so that there is bytecode of every module, of ours too."""
        program = f"import tiny.alpha, tiny.sub.beta, tiny.other, {OURS}"
        otherwise = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTHONOPTIMIZE")
        environment = {name: value for name, value in os.environ.items() if name not in otherwise}
        subprocess.run([self.python, *flags, "-c", program], check=True, cwd=self.uv.wheels, env=environment)


@pytest.fixture(scope="session", params=["pip", "uv"])
def used(request: pytest.FixtureRequest, wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """An environment with version 1.0, patched, and used; to be copied."""
    base = tmp_path_factory.mktemp(f"used-{request.param}")
    uv = Uv(base / "cache", wheels)
    installer = Installer(request.param, uv.environment(base / "venv"), uv)
    installer.install("1.0")
    made = Place(base / "patching", where=site_of(installer.python))
    made.base.mkdir()
    made.write_patchset()
    assert made.apply(Tier.STATIC).exit_code == 0
    installer.run()
    return request.param, base


@pytest.fixture
def installer(used: tuple[str, Path], wheels: Path, tmp_path: Path) -> Installer:
    tool, base = used
    shutil.copytree(base / "venv", tmp_path / "venv", symlinks=True)
    return Installer(tool, tmp_path / "venv/bin/python", Uv(base / "cache", wheels))


@pytest.fixture
def here(installer: Installer, place: MakePlace) -> Place:
    """Version 1.0, patched, and used."""
    return place(site_of(installer.python), root="", python=str(installer.python))


def left(site: Path) -> list[str]:
    """What of the package, and of the tool, lies in a site folder."""
    files = [path.relative_to(site).as_posix() for path in sorted(site.rglob("*")) if path.is_file()]
    return [name for name in files if name.startswith(("tiny", ".ddtree"))]


class TestUninstall:
    def test_leaves_nothing_that_can_be_imported(self, here: Place, installer: Installer) -> None:
        (made,) = (here.site / ADDED).parent.glob("__pycache__/*.pyc")
        assert made.name.startswith("extra.")  # or this would show less than it says
        installer.uninstall()
        assert not (here.site / "tiny").exists() and not list(here.site.glob("tiny-*"))
        assert imports(installer.python, "tiny", "tiny.alpha", OURS) == [False, False, False]
        assert {name.partition("/")[0] for name in left(here.site)} == {".ddtree-patch"}

    def test_what_is_left_is_named_and_harmless(self, here: Place, installer: Installer, place: MakePlace) -> None:
        """The state alone: an installation that is put in this place is known to be `wiped` by it."""
        installer.uninstall()
        by_root = place(here.site, root=str(here.site))
        for refused, code in ((ended(here.apply), 6), (ended(here.revert), 6), (ended(by_root.apply), 2)):
            assert refused.code == code
            assert f"{here.site / '.ddtree-patch'} is what a patch left" in refused.text and "delete it" in refused.text
        shutil.rmtree(here.site / ".ddtree-patch")
        assert "delete it" not in ended(here.apply).text

    def test_of_other_optimisation_levels_pip_leaves_bytecode_as_it_does_of_its_own_and_it_cannot_be_imported(
        self, here: Place, installer: Installer
    ) -> None:
        installer.run("-O")
        installer.uninstall()
        assert imports(installer.python, "tiny.alpha", OURS) == [False, False]
        found = [name for name in left(here.site) if not name.startswith(".ddtree")]
        assert all("/__pycache__/" in name and ".opt-1." in name for name in found)
        assert installer.tool == "pip" or found == []


class TestReplaced:
    """pip #3869: a reinstallation restores what is in RECORD, and leaves what is not."""

    @pytest.mark.parametrize(
        ("version", "options", "files"),
        [
            ("1.0", ("--force-reinstall",), MODULES),
            ("1.1", ("--upgrade",), NEWER),
        ],
        ids=["pip_3869_reinstalled", "upgraded"],
    )
    def test_nothing_of_the_patch_is_left_and_status_says_what_to_do(
        self, here: Place, installer: Installer, version: str, options: tuple[str, ...], files: dict[str, str]
    ) -> None:
        installer.install(version, *options)
        assert {path: here.read(path) for path in files} == {path: text.encode() for path, text in files.items()}
        assert not (here.site / ADDED).exists() and ADDED.encode() not in here.read(RECORD.replace("1.0", version))
        assert imports(installer.python, "tiny.alpha", OURS) == [True, False]
        said = ended(lambda: status(here.session(), check=True))
        assert (said.code, said.text) == (3, "wiped")
        assert any("ddtree-patch apply" in text for _, text in said.diagnostics)
        pristine = {name: data for name, data in here.contents().items() if "__pycache__" not in name}
        assert here.apply(Tier.STATIC).exit_code == 0 and here.status() == "applied"
        assert here.revert().exit_code == 0 and here.status() == "clean"
        assert {name: data for name, data in here.contents().items() if "__pycache__" not in name} == pristine

    def test_downgraded(self, installer: Installer, here: Place) -> None:
        here.revert()
        installer.install("1.1")
        assert here.apply(Tier.STATIC).exit_code == 0
        assert b"newer = True" in here.read(CHANGED[0])
        installer.install("1.0")
        assert here.read(CHANGED[0]) == MODULES[CHANGED[0]].encode() and not (here.site / ADDED).exists()
        assert here.status() == "wiped"
        assert here.apply(Tier.STATIC).exit_code == 0
        assert b"newer = True" not in here.read(CHANGED[0]) and b"'new'" in here.read(CHANGED[0])

    @pytest.mark.parametrize("command", ["apply", "revert"])
    def test_hyperloom_397_a_file_that_an_installer_left_behind_is_named_and_goes(
        self, here: Place, installer: Installer, command: str
    ) -> None:
        """Where RECORD was rewritten, the installer does not know what was added."""
        record = here.site / RECORD
        rows = [row for row in record.read_bytes().splitlines(keepends=True) if not row.startswith(ADDED.encode())]
        record.write_bytes(b"".join(rows))
        installer.install("1.1", "--upgrade")
        assert (here.site / ADDED).exists()
        said = ended(lambda: status(here.session(), check=True))
        assert (said.code, said.text) == (3, "wiped")
        (named,) = [text for _, text in said.diagnostics if ADDED in text]
        assert "left" in named and "ddtree-patch revert" in named
        assert ended(getattr(here, command)).code == 0
        if command == "apply":
            assert here.status() == "applied"
            assert ADDED.encode() in here.read(RECORD.replace("1.0", "1.1"))
            here.revert()
        assert not (here.site / ADDED).exists() and here.status() == "clean"


def test_uninstalling_what_was_reverted_is_as_if_nothing_had_been(here: Place, installer: Installer) -> None:
    here.revert()
    installer.uninstall()
    assert left(here.site) == [] and not (here.site / "tiny").exists()
