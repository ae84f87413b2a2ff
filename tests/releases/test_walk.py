"""The steps one after the other: whatever number of them is applied, the tree works as a whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wheel_tree
from ddtree_patcher.model import CheckOutcome, Tier
from ddtree_patcher.verification.names import module_name
from ddtree_patcher.verification.probes_runner import IMPORTS, run_probe
from sglang_releases import STEPS, SUPPORTED, outcomes

pytestmark = pytest.mark.wheels
FIRST_AND_LAST = (SUPPORTED[0], SUPPORTED[-1])
OF_THE_FIRST_WORKER = ("choices", "verify-input", "worker-branch", "node-commit", "requests")  # edited as nowhere later


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "version"),
    [
        (step, version)
        for step in STEPS
        for version in FIRST_AND_LAST
        if outcomes(version, "")[step] != "not_needed" and (version == SUPPORTED[-1] or step in OF_THE_FIRST_WORKER)
    ],
)
def test_the_modules_of_a_step_import_after_it(
    step: str, version: str, tree: Callable[..., Path], run_here: Any, sglang_python: str
) -> None:
    """And the scheduler, which imports them all. Where every step is in effect ``verify`` imports them too."""
    site = tree(version)
    plan = run_here("--root", site, "plan").expect(0).json
    (touched,) = (item["files"] for item in plan["steps"] if item["id"] == step)
    run_here("--root", site, "apply", "--through", step, "--verify", "none").expect(0)
    modules = [*dict.fromkeys([*map(module_name, touched), "sglang.srt.managers.scheduler"])]
    results = run_probe(sglang_python, site, IMPORTS, modules, Tier.IMPORT, time_limit=300)
    assert [item.id for item in results] == [f"import:{module}" for module in modules]
    assert [item for item in results if item.outcome is not CheckOutcome.PASSED] == []


@pytest.mark.parametrize("version", FIRST_AND_LAST)
def test_up_and_down_the_steps(
    version: str, tree: Callable[..., Path], wheel: Callable[[str], Path], run_here: Any
) -> None:
    """The bytes depend on which steps are applied, never on what was there before."""
    whole, climbed = tree(version, "whole"), tree(version, "climbed")
    run_here("--root", whole, "apply", "--verify", "static").expect(0)
    states = []
    for step in STEPS:
        run_here("--root", climbed, "apply", "--through", step, "--verify", "static").expect(0)
        states.append(_digests(run_here("--root", climbed, "status").expect(0).json))
    assert states[-1] == _digests(run_here("--root", whole, "status").json)
    assert _bytes(climbed) == _bytes(whole)
    for step, state in reversed(list(zip(STEPS, states, strict=True))):
        run_here("--root", climbed, "apply", "--through", step, "--verify", "none").expect(0)  # the same bytes again
        assert _digests(run_here("--root", climbed, "status").json) == state
    run_here("--root", climbed, "revert").expect(0)
    assert list(wheel_tree.differences(wheel(version), climbed)) == []


def _digests(report: dict[str, Any]) -> dict[str, str]:
    return {item["path"]: item["current_sha256"] for item in report["files"]}


def _bytes(site: Path) -> dict[str, bytes]:
    """Every Python file and RECORD."""
    return {
        path.relative_to(site).as_posix(): path.read_bytes()
        for path in (*site.rglob("*.py"), *site.glob("*.dist-info/RECORD"))
    }
