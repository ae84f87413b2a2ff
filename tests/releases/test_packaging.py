"""The wheel that is built here works on its own: installed into an empty environment, run from an empty folder."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wheel_tree
from ddtree_patcher.patchset import bundled
from sglang_releases import STEPS, WITH_DFLASH, outcomes

pytestmark = [pytest.mark.wheels, pytest.mark.slow]

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our wheel, built from our source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(REPOSITORY)], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def program(built: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The console script in an environment that has our wheel, what it depends on, and nothing else."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    subprocess.run([*pip, "install", str(built)], check=True)
    return str(folder / "bin" / "ddtree-patch")


def test_it_plans_from_an_empty_folder(program: str, tree: Callable[..., Path], tmp_path: Path, run_cli: Any) -> None:
    site = tree("0.5.11")
    report = _run(program, tmp_path, "--root", str(site), "plan")
    assert {item["id"]: item["outcome"] for item in report["steps"]} == outcomes("0.5.11", "pending")
    # The same patchset as in this checkout, file by file.
    assert report["patchset"] == run_cli("--root", site, "plan").expect(0).json["patchset"]
    second = ("--patchset", "rocm", "--root", str(site), "plan")
    assert _run(program, tmp_path, *second)["patchset"] == run_cli(*second).expect(0).json["patchset"]


def test_the_snapshots_come_with_it(program: str, shared_tree: Callable[[str], Path], tmp_path: Path) -> None:
    report = _run(program, tmp_path, "--root", str(shared_tree("0.5.12")), "diff", "--exit-code")
    snapshot = report["snapshot"]
    assert (snapshot["version"], snapshot["chosen"], snapshot["agreement"]) == ("0.5.12", "version", 1.0)
    assert snapshot["files"] == snapshot["identical_files"] > 0
    # The survival file came, too: without it nothing is known of how a step was done there.
    assert {item["prospect"] for item in report["meaning"]} == {"still_fits", "not_needed"}


def test_it_applies_and_reverts(
    program: str, tree: Callable[..., Path], wheel: Callable[[str], Path], tmp_path: Path
) -> None:
    site = tree("0.5.13.post1")
    report = _run(program, tmp_path, "--root", str(site), "apply", "--require", "static")
    assert [item["id"] for item in report["steps"]] == list(STEPS)
    _run(program, tmp_path, "--root", str(site), "revert")
    assert list(wheel_tree.differences(wheel("0.5.13.post1"), site)) == []


def test_no_source_of_sglang_is_in_it(built: Path) -> None:
    """Snapshots are digests; nothing else of SGLang's travels."""
    names = wheel_tree.names(built)
    snapshots = {name for name in names if name.startswith("ddtree_patcher/_snapshots/")}
    digests = {f"sglang-{version}.json" for version in WITH_DFLASH} | {"wheels.txt"}
    digests |= {f"survival/{name}.json" for name in bundled()}
    assert snapshots == {f"ddtree_patcher/_snapshots/{name}" for name in digests}
    assert [name for name in names if name.startswith("sglang/")] == []


def _run(program: str, parent: Path, *args: str) -> dict[str, Any]:
    empty = parent / "empty"
    empty.mkdir(exist_ok=True)
    done = subprocess.run([program, "--format", "json", *args], capture_output=True, cwd=empty, check=False)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    assert list(empty.iterdir()) == []
    report = json.loads(done.stdout)
    assert isinstance(report, dict)
    return report
