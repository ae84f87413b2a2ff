"""A patched SGLang says which patchset it has: the one that `status` names, in every process that it starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from sglang_releases import SUPPORTED

pytestmark = pytest.mark.wheels

ENDS = (SUPPORTED[0], SUPPORTED[-1])
STAMP = "sglang/srt/speculative/ddtree_patchset.py"


def constants(site: Path) -> Mapping[str, str]:
    scope: dict[str, Any] = {}
    exec((site / STAMP).read_text("utf-8"), scope)
    return {name.removeprefix("PATCHSET_").lower(): scope[name] for name in scope if name.startswith("PATCHSET_")}


@pytest.mark.parametrize("version", ENDS)
def test_the_constants_are_what_plan_and_status_say(version: str, tree: Callable[..., Path], run_cli: Any) -> None:
    site = tree(version)
    planned = run_cli("--root", site, "plan").expect(0).json
    assert STAMP in {item["path"] for item in planned["files"] if item["added"]}
    run_cli("--root", site, "apply", "--verify", "static").expect(0)
    status = run_cli("--root", site, "status", "--check").expect(0).json
    assert constants(site) == planned["patchset"] == status["patchset"] == status["applied"]
    run_cli("--root", site, "revert").expect(0)
    assert not (site / STAMP).exists()


def test_verify_notices_another_digest(tree: Callable[..., Path], run_cli: Any) -> None:
    site = tree(ENDS[0])
    run_cli("--root", site, "apply", "--verify", "none").expect(0)
    own = constants(site)["digest"]
    stamp = site / STAMP
    stamp.chmod(0o644)
    stamp.write_text(stamp.read_text("utf-8").replace(own, "0" * 64), "utf-8")
    checks = {
        item["id"]: item for item in run_cli("--root", site, "verify", "--tier", "static").expect(5).json["checks"]
    }
    failed = checks[f"stamp:{STAMP}"]
    assert failed["outcome"] == "failed"
    assert f"PATCHSET_DIGEST is '{'0' * 64}', and this patchset's is '{own}'" in failed["detail"]
