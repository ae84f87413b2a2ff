"""The GitLab job: green on what pip installs, and red, with its artefacts, on what is wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from .conftest import PATCHED, SGLANG, edit
from .gitlab import Job
from .machine import RECIPES, Machine

pytestmark = [pytest.mark.wheels, pytest.mark.slow]


@pytest.fixture
def job(tmp_path: Path, machine: Machine, source: Path) -> Job:
    shutil.copytree(source, tmp_path / "project/ddtree-patch")
    return Job(RECIPES / "gitlab/gitlab-ci.yml", tmp_path / "project", machine.environment(tmp_path / "home"))


def test_green_and_red(job: Job, other_build: Path) -> None:
    assert job.run(SGLANG=SGLANG, TIER="static") == 0, job.log
    assert (job.artefacts, job.missing) == (["apply.json", "verify.json", "verify.xml", "codequality.json"], [])
    assert json.loads((job.checkout / "codequality.json").read_text()) == []
    suite = ElementTree.parse(job.checkout / "verify.xml").getroot()[0]
    assert suite.get("failures") == "0" and int(suite.get("tests", 0)) > 50
    assert json.loads((job.checkout / "apply.json").read_text())["outcome"] == "ok"

    edit(job.checkout / ".venv")
    assert job.run(only=" verify ", TIER="static") == 5
    assert "verify.xml" in job.artefacts and PATCHED in job.log
    failures = ElementTree.parse(job.checkout / "verify.xml").findall(".//failure")
    assert any(PATCHED in (failure.text or "") for failure in failures)

    noted = json.loads((job.checkout / "codequality.json").read_text())
    assert PATCHED in {item["location"]["path"] for item in noted}

    for name in ("verify.xml", "codequality.json"):
        (job.checkout / name).unlink()
    assert job.run(only=".venv", SGLANG=f"--force-reinstall --no-deps {other_build}", TIER="static") == 4
    assert "apply.json" in job.artefacts and job.missing == [
        "verify.xml",
        "codequality.json",
    ]  # it stopped before the last line
    report = json.loads((job.checkout / "apply.json").read_text())
    assert report["exit_name"] == "conflict"
    assert PATCHED in {item["path"] for item in report["diagnostics"]}
