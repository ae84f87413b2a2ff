"""``make release``: a release that is taken out of a copy of the repository and added again is as it was."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pages import ROOT

import add_release
from sglang_releases import SUPPORTED

NEWEST = SUPPORTED[-1]
PARTS = ("ddtree_patcher", "patchsets", "snapshots", "tools")
DIGEST = "0" * 64
LIST = f"# What is here.\nsglang==0.5.9 --hash=sha256:{DIGEST}\nsglang==0.5.13.post1 --hash=sha256:{DIGEST}\n"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The repository without its newest release."""
    folder = tmp_path / "repository"
    for part in PARTS:
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "snapshots" / f"sglang-{NEWEST}.json").unlink()
    names = folder / "snapshots" / "wheels.txt"
    kept = [line for line in names.read_text().splitlines(keepends=True) if not line.startswith(f"sglang=={NEWEST} ")]
    names.write_text("".join(kept))
    return folder


def add(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "tools/add_release.py", *arguments],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), "PIP_NO_INDEX": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def snapshots(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "snapshots").iterdir() if path.is_file()}


@pytest.mark.wheels
def test_added_again_it_is_as_it_was(copy: Path, wheel: Callable[[str], Path]) -> None:
    done = add(copy, NEWEST, "--wheels", str(wheel(NEWEST).parent))
    assert done.returncode == 0, done.stderr
    assert snapshots(copy) == snapshots(ROOT)
    assert f"# against {SUPPORTED[-2]}" in done.stdout and f"{NEWEST}   applies" in done.stdout
    assert "# What to look at now" in done.stdout


def test_a_release_that_cannot_be_had_changes_nothing(copy: Path, tmp_path: Path) -> None:
    before = snapshots(copy)
    done = add(copy, "0.5.999", "--wheels", str(tmp_path / "wheels"))
    assert (done.returncode, snapshots(copy)) == (6, before)
    assert "0.5.999 could not be fetched" in done.stderr and "Traceback" not in done.stderr
    done = add(copy, "newest", "--wheels", str(tmp_path / "wheels"))
    assert (done.returncode, snapshots(copy)) == (2, before)
    assert "newest" in done.stderr and "Traceback" not in done.stderr


def test_the_list_stays_in_the_order_of_versions() -> None:
    text = add_release.listed(LIST, "0.5.13", DIGEST)
    assert [line.split()[0] for line in text.splitlines()[1:]] == [
        "sglang==0.5.9",
        "sglang==0.5.13",
        "sglang==0.5.13.post1",
    ]
    assert text.startswith("# What is here.\n") and add_release.listed(text, "0.5.13", DIGEST) == text
    assert add_release.before(text, "0.5.13.post1") == "0.5.13"
    assert add_release.before(text, "0.5.13") == ""  # the one before has no snapshot
