"""Command lines that do not name DDTREE resolve as they did before: same fields, same values, same refusals."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ddtree_patcher.model import CheckOutcome, Tier
from ddtree_patcher.verification.probes_runner import run_probe
from sglang_releases import WITH_DFLASH

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

PROGRAM = Path(__file__).parent / "probe_resolved_args.py"


@pytest.mark.parametrize("version", WITH_DFLASH)
def test_other_algorithms_are_not_touched(
    version: str, tree: Callable[..., Path], run_here: Any, sglang_python: str
) -> None:
    site = tree(version)
    before = _resolved(sglang_python, site)
    run_here("--root", site, "apply", "--verify", "none").expect(0)
    after = _resolved(sglang_python, site)
    assert list(after) == list(before)
    for name in before:
        assert after[name] == before[name], name
    _assert_not_vacuous(before)


def _resolved(python: str, site: Path) -> Mapping[str, Any]:
    """Command line → its resolved fields, or what refused it."""
    results = run_probe(python, site, PROGRAM, [], Tier.SMOKE, time_limit=300)
    assert [item for item in results if item.outcome is not CheckOutcome.PASSED] == []
    return {item.id.removeprefix("resolved:"): _fields(item.detail) for item in results}


def _fields(detail: str) -> dict[str, Any]:
    """The JSON object, without the names of stand-ins that follow it."""
    fields, _ = json.JSONDecoder().raw_decode(detail)
    assert isinstance(fields, dict)
    return fields


def _assert_not_vacuous(resolved: Mapping[str, Any]) -> None:
    """The table has what is meant: accepted and refused lines of every algorithm, each resolved in full."""
    registered = resolved["registered"]["registered"]
    lines = {name: fields for name, fields in resolved.items() if name != "registered"}
    accepted = {name: fields["speculative_algorithm"] for name, fields in lines.items() if "refused" not in fields}
    assert {None, "DFLASH", "EAGLE", "NGRAM"} <= set(accepted.values())
    assert {"dflash-pp", "dflash-without-draft", "unknown"} <= set(lines) - set(accepted)
    assert ("third-party" in accepted) is (registered is not None)
    assert all(len(lines[name]) > 300 for name in accepted)
