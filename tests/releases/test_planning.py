"""What is refused, and what is said then, on real trees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from footprint import footprints

from sglang_releases import STEPS, WITHOUT_DFLASH

pytestmark = pytest.mark.wheels

_RUNTIME = "runtime requires flags requires enum"
_BRANCH = f"worker-branch requires worker-import requires verify-input requires {_RUNTIME}"
CHAINS = {
    "flags": "flags requires enum",
    "validation": "validation requires flags requires enum",
    "choices": "choices requires validation requires flags requires enum",
    "runtime": _RUNTIME,
    "verify-input": f"verify-input requires {_RUNTIME}",
    "worker-import": f"worker-import requires verify-input requires {_RUNTIME}",
    "worker-branch": _BRANCH,
    "widths": f"widths requires {_RUNTIME}",
    "row-headroom": f"row-headroom requires {_RUNTIME}",
    "graph-mask": f"graph-mask requires {_RUNTIME}",
    **{step: f"{step} requires {_RUNTIME}" for step in ("conv-windows", "state-room")},
    "tree-gate": f"tree-gate requires verify-input requires {_RUNTIME}",
    "node-commit": f"node-commit requires {_BRANCH}",
    "requests": "requests requires flags requires enum",
    **{step: f"{step} requires enum" for step in ("draft-window", "hidden-states", "lazy-states", "metrics")},
}


ALONE = ("enum", "deferred-clear")  # what requires nothing


@pytest.mark.parametrize("step", [step for step in STEPS if step not in ALONE])
def test_a_step_without_its_requirements_is_refused_with_the_chain(
    step: str, tree: Callable[..., Path], run_here: Any
) -> None:
    site = tree("0.5.11")
    before = footprints(site)
    refused = run_here("--root", site, "apply", "--step", step, "--verify", "none").expect(2)
    problem = refused.json["diagnostics"][0]
    assert CHAINS[step] in problem["summary"]
    assert f"--through {step}" in problem["remedy"]
    assert footprints(site) == before


@pytest.mark.parametrize("command", [("plan",), ("apply",)], ids=["plan", "apply"])
def test_a_release_without_dflash_is_refused_and_the_first_that_has_it_is_named(
    command: tuple[str, ...], tree: Callable[..., Path], run_here: Any
) -> None:
    site = tree(WITHOUT_DFLASH)
    before = footprints(site)
    refused = run_here("--root", site, *command).expect(6)
    (problem,) = refused.json["diagnostics"]
    assert problem["code"] == "environment_refused"
    assert WITHOUT_DFLASH in problem["summary"]
    assert "0.5.11" in problem["remedy"]
    assert footprints(site) == before


@pytest.mark.parametrize("without", [True, False], ids=["all-others", "alone"])
def test_the_mended_fault_of_upstream_can_be_left_out_and_applied_alone(
    without: bool, tree: Callable[..., Path], run_here: Any
) -> None:
    site = tree("0.5.13.post1")
    steps = [step for step in STEPS if (step != "deferred-clear") is without]
    chosen = [word for step in steps for word in ("--step", step)]
    applied = run_here("--root", site, "apply", "--verify", "static", *chosen).expect(0)
    assert applied.outcomes.get("deferred-clear") == (None if without else "applied")
    backend = site / "sglang/srt/layers/attention/hybrid_linear_attn_backend.py"
    assert ("is_target_verify() or self.is_draft_worker" in backend.read_text("utf-8")) is not without
    run_here("--root", site, "revert").expect(0)
