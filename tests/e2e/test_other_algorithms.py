"""DFLASH, and no speculation, run on a patched tree as on the tree before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from scripts import assert_sound, unequal_and_shared

from sglang_releases import SUPPORTED

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]


@pytest.mark.parametrize("algorithm", ["NONE", "DFLASH"])
@pytest.mark.parametrize("version", SUPPORTED)
def test_patching_changes_nothing(version: str, algorithm: str, play: Callable[..., dict[str, Any]]) -> None:
    before = play(version, algorithm, patched=False, script=unequal_and_shared())
    after = play(version, algorithm, script=unequal_and_shared())
    assert_sound(before)
    assert before["rounds"] == after["rounds"]  # tokens, acceptance lengths, counts, cache hits
    assert before["batches"] == after["batches"]
    assert before["total_slots"] == after["total_slots"]
