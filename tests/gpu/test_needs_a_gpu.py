"""The script for a GPU says so where there is none, and never passes for having run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("check_graphs.py")
NOTHING_TO_RUN_ON = 77


def run(python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    command = [python, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.engine
def test_without_a_device(sglang_python: str) -> None:
    done = run(sglang_python)
    assert done.returncode == NOTHING_TO_RUN_ON
    assert done.stdout == ""
    assert done.stderr.startswith("NOT RUN: torch ")
    assert "sees no CUDA device. Nothing was checked" in done.stderr


def test_in_an_interpreter_that_is_not_sglangs(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('not here')\n")
    done = run(sys.executable, "--folder", str(tmp_path))
    assert done.returncode == NOTHING_TO_RUN_ON
    assert "has no torch: use the interpreter that SGLang runs in" in done.stderr


def test_where_sglang_is_not_patched(tmp_path: Path) -> None:
    """With a torch that claims a device."""
    (tmp_path / "torch.py").write_text(
        "__version__ = '0'\nclass cuda:\n    @staticmethod\n    def is_available(): return True\n"
    )
    assert "there is no sglang" in run(sys.executable, "--folder", str(tmp_path)).stderr
    (tmp_path / "sglang" / "srt" / "speculative").mkdir(parents=True)
    done = run(sys.executable, "--folder", str(tmp_path))
    assert done.returncode == NOTHING_TO_RUN_ON
    assert "this sglang is not patched: run `ddtree-patch apply` first" in done.stderr
