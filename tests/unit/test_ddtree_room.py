"""Whether the recurrent states of a tree fit, and which budget would: arithmetic on plain objects."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from ddtree_runtime import RUNTIME, SPECULATIVE, package

GIB = 1 << 30
MIB = 1 << 20
WIDTH, BLOCK = 17, 8


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module, in a release that publishes no namespaces."""
    for name in ("sglang", "sglang.srt", SPECULATIVE):
        monkeypatch.setitem(sys.modules, name, package(name))
    config = ModuleType(f"{SPECULATIVE}.ddtree_config")
    spec_values = SimpleNamespace(speculative_num_draft_tokens=WIDTH, speculative_dflash_block_size=BLOCK)
    config.spec_config = lambda: spec_values  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, config.__name__, config)
    spec = importlib.util.spec_from_file_location(f"{SPECULATIVE}.ddtree_room", RUNTIME / "ddtree_room.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def holder(ratio: int = 3, **arguments: Any) -> Any:
    values = {
        "max_running_requests": 48,
        "max_mamba_cache_size": None,
        "disable_radix_cache": False,
        "mamba_full_memory_ratio": 1.0,
        **arguments,
    }
    return SimpleNamespace(
        server_args=SimpleNamespace(**values),
        mambaish_config=SimpleNamespace(mamba2_cache_params=SimpleNamespace(mamba_cache_per_req=64 * MIB)),
        _calculate_mamba_ratio=lambda: ratio,
    )


def advised(message: str) -> int:
    return int(message.partition("budget of at most ")[2].partition(",")[0])


@pytest.mark.parametrize(
    ("arguments", "reserves_all", "needed"),
    [
        # 48 requests and one of padding, 17 nodes and a state each.
        ({"disable_radix_cache": True}, False, 49 * 18 / 16),
        # As many requests as slots allow, a third.
        ({"max_mamba_cache_size": 30}, False, (11 * 17 + 31) / 16),
        ({"max_mamba_cache_size": 30}, True, (49 * 17 + 31) / 16),
        # One request at least, in half of the memory.
        ({}, False, 2 * (2 * 17 + 4) / 16),
        ({}, True, (49 * 17 + 7) / 16),
    ],
)
def test_states_fit_or_are_refused_with_the_largest_budget_that_would(
    arguments: dict[str, Any], reserves_all: bool, needed: float, room: ModuleType
) -> None:
    """GiB for trees of 17 nodes, each a sixteenth of one."""
    wanted = holder(**arguments)
    room.refuse_too_many_states(wanted, needed * 1.001, reserves_all=reserves_all)
    with pytest.raises(ValueError, match=r"no room for the recurrent states.*--max-running-requests") as refused:
        room.refuse_too_many_states(wanted, needed * 0.999, reserves_all=reserves_all)
    budget = advised(str(refused.value))
    states = room._states(wanted, needed * 0.999 * GIB, reserves_all)
    assert BLOCK - 1 <= budget < WIDTH - 1
    assert states.needs(budget + 1) < states.room * 0.875 <= states.needs(budget + 2)


def test_where_no_budget_fits_fewer_requests_are_advised(room: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"No budget fits.*8 nodes itself"):
        room.refuse_too_many_states(holder(disable_radix_cache=True), 10.0)


def test_published_namespaces_are_asked_first(room: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """From 0.5.17 on; arguments keep what the user gave."""
    context = ModuleType("sglang.srt.runtime_context")
    schedule = SimpleNamespace(max_running_requests=1, max_mamba_cache_size=None, mamba_full_memory_ratio=1.0)
    context.get_schedule = lambda: schedule  # type: ignore[attr-defined]
    context.get_memory = lambda: SimpleNamespace(disable_radix_cache=True)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, context.__name__, context)
    room.refuse_too_many_states(holder(), (2 * 18) / 16 + 0.01)
    with pytest.raises(ValueError, match="1 running"):
        room.refuse_too_many_states(holder(), (2 * 18) / 16 - 0.01)
