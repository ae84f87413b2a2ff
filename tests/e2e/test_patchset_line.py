"""A server says at its start which patchset it runs: the one that ``status`` names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_server import EngineServer
from scripts import tree_flags

from sglang_releases import SUPPORTED

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]


@pytest.mark.parametrize("version", [SUPPORTED[0], SUPPORTED[-1]])
def test_the_log_names_the_patchset(
    version: str, engines: Callable[..., EngineServer], patched_tree: Callable[[str], Path], run_cli: Any
) -> None:
    found = engines(version).call("self_check.start", {"SGLANG_DDTREE_SELF_CHECK": "0"}, flags=tree_flags(8, 4))
    patchset = run_cli("--root", patched_tree(version), "status").expect(0).json["patchset"]
    lines = [line for line in found["logs"] if "patchset" in line]
    assert lines == ["INFO DDTREE: patchset {id} {version} ({digest}).".format(**patchset)]
