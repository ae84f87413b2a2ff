"""A patchset runs code, and says so; none is run that was not asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ddtree_patcher import patchset as patchsets
from transaction.world import World

ROOT = Path(__file__).resolve().parents[2]
TELL = "\nfrom pathlib import Path\n\nPath({marker!r}).write_text('run')\n"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.installed(tmp_path.resolve() / "world")


@pytest.fixture
def installed(world: World) -> Path:
    """A site folder with two patchsets that tell when they are run, as entry points of one distribution."""
    site = world.base / "plugins"
    info = site / "plugins-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugins\nVersion: 1.0\n")
    lines = ["[ddtree_patch.patchsets]", "asked = asked_package", "other = other_package", "aaa = other_package"]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    for name in ("asked", "other"):
        folder = site / f"{name}_package"
        folder.mkdir()
        code = (world.patchset / "__init__.py").read_text()
        (folder / "__init__.py").write_text(code + TELL.format(marker=str(site / f"{name}.run")))
    return site


def ran(site: Path) -> list[str]:
    return sorted(item.stem for item in site.glob("*.run"))


def command(world: World, installed: Path, *args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    line = [sys.executable, "-P", "-m", "ddtree_patcher", "--format", "json", "--root", str(world.site), *args]
    if sys.version_info < (3, 11):
        line.remove("-P")
    return subprocess.run(line, capture_output=True, text=True, check=False, env=environment, cwd=cwd or world.base)


def test_no_entry_point_is_run_but_the_one_that_is_named(world: World, installed: Path) -> None:
    done = command(world, installed, "--patchset", "asked", "status")
    assert done.returncode == 0, done.stderr
    assert ran(installed) == []  # its identity is read without running it
    done = command(world, installed, "--patchset", "asked", "apply", "--verify", "none")
    assert done.returncode == 0, done.stdout
    assert ran(installed) == ["asked"]
    (installed / "asked.run").unlink()
    assert command(world, installed, "--patchset", "asked", "revert").returncode == 0
    assert "other" not in ran(installed)


@pytest.mark.parametrize("args", [["status"], ["doctor"], ["plan"], ["apply"], ["verify"], ["--help"]], ids=" ".join)
def test_none_is_run_where_none_is_named(world: World, installed: Path, args: list[str]) -> None:
    command(world, installed, *args)
    assert ran(installed) == []


def test_a_folder_that_lies_where_the_tool_is_started_takes_nobodys_place(
    world: World, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither that of the built-in one nor that of an entry point."""
    here = world.base / "here"
    for name in ("ddtree", "asked"):
        (here / name).mkdir(parents=True)
        (here / name / "__init__.py").write_text(TELL.format(marker=str(installed / "here.run")))
    command(world, installed, "plan", cwd=here)
    done = command(world, installed, "--patchset", "asked", "plan", cwd=here)
    assert done.returncode == 0, done.stdout
    assert ran(installed) == ["asked"]
    monkeypatch.chdir(here)
    assert patchsets.locate("ddtree") != here / "ddtree"
    assert patchsets.locate("./ddtree") == here / "ddtree"


def test_what_is_run_is_said(run_here: Callable[..., object]) -> None:
    shown = run_here("--help").stdout  # type: ignore[attr-defined]
    assert "Its Python code is run" in " ".join(shown.split())
    text = " ".join((ROOT / "docs/writing-a-patchset.md").read_text("utf-8").split())
    assert "Loading a patchset runs its Python code" in text and "nothing in them is run" in text


BROKEN = {
    "a source on a mount that cannot be read": "open('/nonexistent/fragment.py').read()",
    "a source that fails half way": "raise OSError(5, 'Input/output error', '/mnt/fragment.py')",
    "a source that breaks off": "raise SystemExit(0)",
    "a source that is not there": "import no_such_fragment",
}


@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.parametrize("verb", ["plan", "apply"])
def test_a_patch_that_cannot_be_read_is_an_error_and_never_a_skip(
    world: World, run_here: Callable[..., object], case: str, verb: str
) -> None:
    """Hyperloom #516: the patch lay on a network mount, could not be read, and the server was started unpatched."""
    code = world.patchset / "__init__.py"
    code.write_text(code.read_text() + BROKEN[case] + "\n")
    before = world.footprint()
    done = run_here("--root", world.site, "--patchset", world.patchset, verb)
    assert done.exit_code == 2, done.stdout  # type: ignore[attr-defined]
    assert done.codes == ["patchset_invalid"]  # type: ignore[attr-defined]
    assert world.footprint() == before
    (world.patchset / "__init__.py").unlink()
    done = run_here("--root", world.site, "--patchset", world.patchset, verb)
    assert (done.exit_code, done.codes) == (2, ["usage"])  # type: ignore[attr-defined]
    assert world.footprint() == before
