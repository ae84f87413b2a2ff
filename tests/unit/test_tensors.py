"""``tests/tensors`` needs torch, which this environment has not: each of its files runs in the interpreter that has it.

Its tests count as one here, and what pytest says of them there is what a failure shows. None may be skipped, and a file
in which none runs is a failure.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
FILES = sorted(path.relative_to(REPOSITORY).as_posix() for path in REPOSITORY.glob("tests/tensors/test_*.py"))
OUTER = "PYTEST_"  # what this run tells its own workers is not for the inner one

pytestmark = [pytest.mark.engine, pytest.mark.slow]


@pytest.mark.parametrize("file", FILES)
def test_in_the_interpreter_that_has_torch(file: str, sglang_python: str, tmp_path: Path) -> None:
    options = ("-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'inner'}")
    done = subprocess.run(
        [sglang_python, "-m", "pytest", *options, file],
        cwd=REPOSITORY,
        env={name: value for name, value in os.environ.items() if not name.startswith(OUTER)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}"
    assert re.search(r"^\d+ passed in ", done.stdout, re.MULTILINE), done.stdout


def test_there_are_tests_to_run() -> None:
    assert len(FILES) >= 6
