"""The program behind ``verify --tier e2e``, where it cannot pass. That it does: tests/releases/test_round_trip.py."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
from engine_server import PROGRAM as SERVER

from ddtree_patcher.model import CheckOutcome, CheckResult, Tier
from ddtree_patcher.verification.probes_runner import run_probe
from sglang_releases import SUPPORTED

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

PROGRAM = SERVER.with_name("program.py")
TIME_LIMIT = 900.0


def test_an_unpatched_installation_fails_where_ddtree_is_asked_for(
    shared_tree: Callable[[str], Path], sglang_python: str
) -> None:
    results = run_probe(sglang_python, shared_tree(SUPPORTED[-1]), PROGRAM, [], Tier.E2E, TIME_LIMIT)
    outcomes = _outcomes(results)
    assert outcomes["plain-decoding"] == outcomes["dflash-tokens"] == CheckOutcome.PASSED
    others = {name: outcome for name, outcome in outcomes.items() if name not in ("plain-decoding", "dflash-tokens")}
    assert set(others.values()) == {CheckOutcome.FAILED}
    assert all("unrecognized arguments: --speculative-ddtree-budget" in result.detail for result in results[2:])


def test_without_torch_nothing_is_run(shared_tree: Callable[[str], Path]) -> None:
    """As in the interpreter of these tests, which has none."""
    assert find_spec("torch") is None
    results = run_probe(sys.executable, shared_tree(SUPPORTED[-1]), PROGRAM, [], Tier.E2E, TIME_LIMIT)
    assert set(_outcomes(results).values()) == {CheckOutcome.NOT_RUN}
    assert all("torch is not installed" in result.detail for result in results)


def _outcomes(results: Sequence[CheckResult]) -> dict[str, CheckOutcome]:
    return {result.id: result.outcome for result in results}
