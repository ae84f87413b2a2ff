"""docs/supported-releases.md is what ``matrix`` makes of the wheels, and of what tests showed; no test, no claim."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from capabilities import TITLES
from ddtree_patcher.operations.capabilities import load_capabilities
from sglang_releases import WITH_DFLASH

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs" / "capabilities.json"
PAGE = ROOT / "docs" / "supported-releases.md"
ANEW = "run `make supported-releases`"


@pytest.mark.wheels
@pytest.mark.slow
def test_the_page_is_what_the_generator_makes(wheel: Callable[[str], Path], tmp_path: Path, run_here: Any) -> None:
    (folder,) = {wheel(version).parent for version in WITH_DFLASH}
    page = tmp_path / "page.md"
    run_here("matrix", "--wheels", folder, "--capabilities", RECORD, "--markdown", page)
    assert page.read_text("utf-8") == PAGE.read_text("utf-8"), ANEW


def test_the_page_has_every_release_and_every_capability() -> None:
    lines = PAGE.read_text("utf-8").splitlines()
    (heading,) = [line for line in lines if line.startswith("| release |")]
    assert [cell.strip() for cell in heading.split("|")[5:-1]] == list(TITLES.values()), ANEW
    rows = lines[lines.index(heading) + 2 :][: len(WITH_DFLASH)]
    assert [row.split("|")[1].strip() for row in rows] == list(WITH_DFLASH), ANEW


def test_the_record_has_the_capabilities_that_tests_may_show() -> None:
    assert {item.id: item.title for item in load_capabilities(RECORD)} == TITLES, ANEW


def test_every_claim_has_a_test_that_says_so(tmp_path: Path) -> None:
    """For this capability, on this release; and CI, or `make test-all`, is red while it does not pass."""
    collected = tmp_path / "collected.json"
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "-m", "shows", "tests"]
    done = subprocess.run(
        [*command, "--record-capabilities", str(collected)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "DDTREE_TEST_ALL": "1"},  # what is asked of some releases alone, unless all are asked for
    )
    assert done.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED), done.stdout
    known = claims(collected) if collected.exists() else set()
    assert claims(RECORD) <= known, f"no such tests: {claims(RECORD) - known}; {ANEW}"


def claims(record: Path) -> set[tuple[str, str, str, str]]:
    return {
        (item["id"], kind, version, test)
        for item in json.loads(record.read_bytes())["capabilities"]
        for kind in ("shown", "refused")
        for version, tests in item[kind].items()
        for test in tests
    }
