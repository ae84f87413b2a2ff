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
CHAINS = {
    "flags": "flags requires enum",
    "validation": "validation requires flags requires enum",
    "choices": "choices requires validation requires flags requires enum",
    "runtime": _RUNTIME,
    "verify-input": f"verify-input requires {_RUNTIME}",
    "worker-import": f"worker-import requires verify-input requires {_RUNTIME}",
    "worker-branch": f"worker-branch requires worker-import requires verify-input requires {_RUNTIME}",
    "widths": f"widths requires {_RUNTIME}",
    "row-headroom": f"row-headroom requires {_RUNTIME}",
    "graph-mask": f"graph-mask requires {_RUNTIME}",
    "requests": "requests requires flags requires enum",
    **{step: f"{step} requires enum" for step in ("draft-window", "hidden-states", "lazy-states", "metrics")},
}


@pytest.mark.parametrize("step", STEPS[1:])
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
