"""After every step the KV of the committed positions is that of a fresh prefill, in all layers of both models."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from engine_server import EngineServer
from scripts import compare_kv

from sglang_releases import SUPPORTED

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

TOLERANCE = 1e-4  # float32, values of order 1; a wrong row differs by more than 0.1


@pytest.mark.parametrize("version", SUPPORTED)
def test_committed_kv_is_that_of_a_prefill(version: str, engines: Callable[..., EngineServer]) -> None:
    found = compare_kv(engines(version))
    assert found["wrong_lengths"] == []
    assert max(found["worst"].values()) < TOLERANCE, found["worst"]
    assert {"target k0", "target v1", "draft k0", "draft v0"} <= set(found["worst"])
    assert max(map(max, found["accept_lengths"])) > 1
