"""A patched SGLang is attested, copied without its state, and held against the statement on "another machine"."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ddtree_patcher.attestation import load
from ddtree_patcher.snapshot import FileFingerprint, of_release

pytestmark = pytest.mark.wheels

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "schema" / "attestation-1.json"
VERSION = "0.5.18"
WORKER = "sglang/srt/speculative/dflash_worker_v2.py"


def test_a_real_release(
    tree: Callable[..., Path], shared_tree: Callable[[str], Path], run_cli: Any, tmp_path: Path
) -> None:
    site, statement = tree(VERSION), tmp_path / "sglang.intoto.json"
    refused = run_cli("--root", site, "status", "--attest", statement).expect(5)
    assert refused.codes[-1] == "not_attested" and not statement.exists()
    run_cli("--root", site, "apply", "--verify", "none").expect(0)
    report = run_cli("--root", site, "status", "--check", "--attest", statement).expect(0).json
    document = json.loads(statement.read_bytes())
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_bytes())).validate(document)
    assert str(tmp_path).encode() not in statement.read_bytes()

    made, snapshot = load(statement), of_release("sglang", VERSION)
    assert snapshot is not None
    assert made.subjects == {item["path"]: item["current_sha256"] for item in report["files"]}
    for path, digest in made.pristine.items():  # what the wheel has, by what was captured from it
        known = snapshot.files[path]
        assert isinstance(known, FileFingerprint) and known.sha256 == digest
    assert [step.id for step in made.steps] == [step["id"] for step in report["steps"]]
    assert len(made.checks["static"]) == len(report["checks"]) > 100

    image = tmp_path / "image"
    shutil.copytree(site, image, ignore=shutil.ignore_patterns(".ddtree-patch"))
    held = run_cli("--root", image, "verify", "--attestation", statement).expect(0).json
    assert {check["outcome"] for check in held["checks"]} == {"passed"}
    (image / WORKER).write_bytes((image / WORKER).read_bytes() + b"\n")
    failed = run_cli("--root", image, "verify", "--attestation", statement).expect(5).json
    (said,) = failed["diagnostics"]
    assert (
        said["detail"].startswith(f"{WORKER}: on disk ") and f"attested {made.subjects[WORKER][:12]}" in said["detail"]
    )

    other = run_cli("--root", shared_tree("0.5.17"), "verify", "--attestation", statement).expect(5).json
    wrong = {check["id"]: check["detail"] for check in other["checks"] if check["outcome"] == "failed"}
    assert wrong["attested-base"] == f"installed is sglang 0.5.17, attested sglang {VERSION}"
    assert {"attested-files", "attested-pristine"} <= set(wrong)
