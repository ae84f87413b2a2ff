"""``matrix`` on real wheels says of each release what ``plan`` and the static checks say of it when it is unpacked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fetch_wheels import releases
from sglang_releases import STEPS, SUPPORTED, WITH_DFLASH, WITHOUT_DFLASH, outcomes

pytestmark = pytest.mark.wheels

ENDS = (SUPPORTED[0], SUPPORTED[-1])
SURVIVAL = Path(__file__).resolve().parents[2] / "snapshots" / "survival" / "ddtree.json"


@pytest.fixture
def matrix(wheel: Callable[[str], Path], run_here: Any) -> Callable[..., Any]:
    """``matrix(*words)``: the command where the wheels of all releases are."""
    (folder,) = {wheel(version).parent for version in (*WITH_DFLASH, WITHOUT_DFLASH)}
    return lambda *words: run_here("matrix", "--wheels", folder, *words)


@pytest.mark.parametrize("version", ENDS)
def test_a_row_is_what_plan_says_of_the_unpacked_wheel(
    version: str, matrix: Callable[..., Any], shared_tree: Callable[[str], Path], run_here: Any
) -> None:
    (row,) = matrix(version).expect(0).json["releases"]
    planned = run_here("--root", shared_tree(version), "plan").expect(0)
    assert {step["id"]: step["outcome"] for step in row["steps"]} == outcomes(version, "pending")
    for part in ("steps", "diagnostics", "release"):
        assert row[part] == planned.json[part]
    assert row["verdict"] == "applies"
    assert {check["outcome"] for check in row["checks"]} == {"passed"}


@pytest.mark.parametrize("version", ENDS)
def test_the_static_checks_are_those_of_verify(
    version: str, matrix: Callable[..., Any], tree: Callable[..., Path], run_here: Any
) -> None:
    (row,) = matrix(version).expect(0).json["releases"]
    site = tree(version)
    run_here("--root", site, "apply", "--verify", "none").expect(0)
    verified = run_here("--root", site, "verify", "--tier", "static").expect(0).json["checks"]
    # What an installation has and a wheel has not: files on disk, a state, and RECORD as pip wrote it.
    of_installations = {"files-as-applied", "added-files-recorded", "nothing-else-changed"}
    assert [check["id"] for check in row["checks"]] == [
        check["id"] for check in verified if check["id"] not in of_installations
    ]


def test_a_release_without_dflash_is_refused_and_the_first_that_has_it_is_named(matrix: Callable[..., Any]) -> None:
    result = matrix(WITHOUT_DFLASH, SUPPORTED[0]).expect(6)
    refused, other = result.json["releases"]
    assert (refused["version"], refused["verdict"], other["verdict"]) == (WITHOUT_DFLASH, "refused", "applies")
    (problem,) = result.json["diagnostics"]
    assert problem["summary"].startswith(f"{WITHOUT_DFLASH}: ") and "0.5.11" in problem["remedy"]


@pytest.mark.slow
def test_without_versions_every_release_that_has_a_snapshot(matrix: Callable[..., Any], tmp_path: Path) -> None:
    """And what comes with the tool of how the steps found their places in them is what it says now."""
    made = tmp_path / "survival.json"
    rows = matrix("--survival", made).json["releases"]
    assert made.read_bytes() == SURVIVAL.read_bytes(), "make it anew: ddtree-patch matrix --survival FILE"
    assert [row["version"] for row in rows] == list(WITH_DFLASH)
    assert {tuple(step["id"] for step in row["steps"]) for row in rows} == {STEPS}
    assert all(row["wheel_sha256"] == releases()[row["version"]] for row in rows)


def test_a_range_is_every_release_between(matrix: Callable[..., Any]) -> None:
    first, *between, last = SUPPORTED[1:4]
    rows = matrix(first, "…", last).expect(0).json["releases"]
    assert [row["version"] for row in rows] == [first, *between, last]
