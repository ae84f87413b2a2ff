"""On every supported release: unpack, apply, verify, apply again, revert, and every byte is back."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from footprint import footprints, times

import wheel_tree
from sglang_releases import SUPPORTED, outcomes

pytestmark = pytest.mark.wheels
on_every_release = pytest.mark.parametrize("version", SUPPORTED)

TIERS = {"static", "import", "smoke"}
COLUMNS = ["algorithm", "budget", "topk", "spine", "tokens", "equal", "target forwards", "acceptance length"]


@on_every_release
@pytest.mark.engine
@pytest.mark.slow
def test_applied_proved_and_put_back(
    version: str,
    tree: Callable[..., Path],
    wheel: Callable[[str], Path],
    run_cli: Any,
    run_here: Any,
    sglang_python: str,
) -> None:
    """Applied again it writes nothing. The proof is every tier: DDTREE decodes in the release's own engine."""
    site = tree(version)
    before = times(site)
    there = ("--root", site, "--python", sglang_python)

    applied = run_here(*there, "apply", "--verify", "static").expect(0)
    assert applied.json["installation"]["version"] == version
    assert applied.outcomes == outcomes(version, "applied")

    patched = footprints(site)
    again = run_here(*there, "apply", "--verify", "none").expect(0)
    assert again.outcomes == outcomes(version, "already")
    assert footprints(site) == patched

    proved = run_cli(*there, "verify", "--require", "e2e").expect(0)
    assert proved.outcomes == outcomes(version, "already")
    assert _passed(proved.json) == {*TIERS, "e2e"}
    assert _spawned(proved.json) == proved.json["patchset"]
    rows = [row for check in proved.json["checks"] for row in check["rows"]]
    assert [row["algorithm"] for row in rows] == ["NONE", "DFLASH"] + ["DDTREE"] * 5
    assert all(list(row) == COLUMNS for row in rows)
    assert all(row["equal"] for row in rows)
    assert re.search(r"^… e2e: .*ddtree.budget", proved.stderr, re.MULTILINE | re.IGNORECASE), proved.stderr

    assert run_here(*there, "status", "--check").expect(0).json["outcome"] == "applied"
    run_here(*there, "revert").expect(0)
    assert run_here(*there, "status").expect(0).json["outcome"] == "clean"
    assert list(wheel_tree.differences(wheel(version), site)) == []
    assert times(site) == before


def _spawned(report: dict[str, Any]) -> dict[str, str]:
    """Which patchset a spawned scheduler says it runs."""
    (asked,) = (check for check in report["checks"] if check["id"] == "process:spawned-scheduler")
    found = re.search(r"a spawned scheduler has (\S+) (\S+) \((\w{12})\)", asked["detail"])
    assert found, asked["detail"]
    assert report["patchset"]["digest"].startswith(found[3])
    return {"id": found[1], "version": found[2], "digest": report["patchset"]["digest"]}


@pytest.mark.parametrize("version", (SUPPORTED[0], SUPPORTED[-1]))
def test_without_torch_the_static_tier_runs_and_the_others_say_why_not(
    version: str, tree: Callable[..., Path], wheel: Callable[[str], Path], run_cli: Any, bare_python: str
) -> None:
    site = tree(version)
    there = ("--root", site, "--python", bare_python)
    planned = run_cli(*there, "plan", "--check").expect(3)
    assert planned.outcomes == outcomes(version, "pending")
    assert list(wheel_tree.differences(wheel(version), site)) == []

    applied = run_cli(*there, "apply").expect(0)
    found = {tier: {item["outcome"] for item in applied.json["checks"] if item["tier"] == tier} for tier in TIERS}
    assert found == {"static": {"passed"}, "import": {"not_run"}, "smoke": {"not_run"}}
    assert all("torch" in item["detail"] for item in applied.json["checks"] if item["outcome"] == "not_run")

    run_cli(*there, "verify").expect(0)
    required = run_cli(*there, "verify", "--require", "smoke").expect(5)
    assert "not_run" in required.codes


def test_a_required_tier_that_cannot_run_rolls_back(
    tree: Callable[..., Path], wheel: Callable[[str], Path], run_cli: Any, bare_python: str
) -> None:
    site = tree("0.5.11")
    before = times(site)
    refused = run_cli("--root", site, "--python", bare_python, "apply", "--require", "import").expect(5)
    assert "rolled_back" in refused.codes
    assert list(wheel_tree.differences(wheel("0.5.11"), site)) == []
    assert times(site) == before


def _passed(report: dict[str, Any]) -> set[str]:
    """The tiers that ran, where every check passed."""
    assert {item["outcome"] for item in report["checks"]} == {"passed"}
    return {item["tier"] for item in report["checks"]}
