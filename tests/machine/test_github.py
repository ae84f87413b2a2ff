"""On GitHub: annotations and a step summary, JSON alone where it was, and nothing that is quoted becomes a command."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import github_runner
import schemas

PROGRAM = Path(sys.executable).with_name("ddtree-patch")
FORGED = "no\n::error file=x::forged\n::stop-commands::x\n##[error]forged"


@dataclass(frozen=True)
class Ended:
    code: int
    stdout: str
    stderr: str


Run = Callable[..., Ended]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """``run(*args)``: the console script, as a step on GitHub's runner."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    monkeypatch.delenv("DDTREE_PATCH_STATE_DIR", raising=False)
    (tmp_path / "site" / "sglang").mkdir(parents=True)
    (tmp_path / "site" / "sglang" / "__init__.py").touch()

    def call(*args: str) -> Ended:
        command = [str(PROGRAM), "--root", str(tmp_path / "site"), *args]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", stdin=subprocess.DEVNULL, check=False)
        return Ended(done.returncode, done.stdout, done.stderr)

    return call


def summary(tmp_path: Path) -> str:
    return (tmp_path / "summary.md").read_text("utf-8")


def test_json_is_alone_on_standard_output(run: Run, tmp_path: Path) -> None:
    done = run("--format", "json", "plan")
    assert done.code == 6 and done.stdout.startswith("{")
    assert schemas.complaints(json.loads(done.stdout)) == []
    (told,) = github_runner.commands(done.stderr)
    assert (told.name, told.properties) == ("error", {"title": "ddtree-patch environment_refused"})
    assert "Remedy: " in told.message
    assert summary(tmp_path).startswith("### ddtree-patch plan: environment_refused (exit 6)\n")


def test_text_is_followed_by_annotations(run: Run, tmp_path: Path) -> None:
    done = run("plan")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("::stop-commands::") and lines[-1].startswith("::error ")
    token = lines[0].rpartition("::")[2]
    assert lines.count(f"::{token}::") == 1 and lines[-2] == f"::{token}::"
    assert [item.name for item in github_runner.commands(done.stdout)] == ["error"]
    other = run("plan").stdout.splitlines()[0]
    assert other != lines[0]  # nobody can know it beforehand
    assert summary(tmp_path).count("### ddtree-patch plan") == 2  # added, never replaced


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_is_quoted_forges_nothing(run: Run, tmp_path: Path, form: str) -> None:
    done = run("--format", form, "--root", FORGED, "plan")
    assert done.code == 2 and "forged" in done.stdout
    told = github_runner.commands(done.stdout) + github_runner.commands(done.stderr)
    assert [(item.name, item.properties) for item in told] == [("error", {"title": "ddtree-patch usage"})]
    assert FORGED in told[0].message
    assert [line for line in summary(tmp_path).splitlines() if line.startswith(("::", "##["))] == []


@pytest.mark.parametrize("off", ["option", "variable", "elsewhere"])
def test_it_can_be_turned_off(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, off: str) -> None:
    if off == "variable":
        monkeypatch.setenv("DDTREE_PATCH_NO_GITHUB", "1")
    if off == "elsewhere":
        monkeypatch.setenv("GITHUB_ACTIONS", "false")
    done = run(*(["--no-github"] if off == "option" else []), "plan")
    assert done.code == 6 and "::" not in done.stdout + done.stderr
    assert not (tmp_path / "summary.md").exists()


def test_a_summary_that_cannot_be_written_is_a_warning(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    done = run("--format", "json", "status")
    assert done.code == 0
    assert f"the step summary is missing: {tmp_path} cannot be written: Is a directory" in done.stderr


def test_a_summary_that_is_full_already_stays_below_the_limit(run: Run, tmp_path: Path) -> None:
    """GitHub drops a summary of more than 1 MiB whole, and with it what others wrote."""
    (tmp_path / "summary.md").write_bytes(b"x" * (1024 * 1024 - 100))
    assert run("plan").code == 6
    assert 1024 * 1024 - 100 <= (tmp_path / "summary.md").stat().st_size <= 1024 * 1024


def test_progress_forges_nothing(run_here: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ddtree_patcher.cli import progress
    from ddtree_patcher.operations import inspecting

    def doctor(session: Any) -> Any:
        session.options.say("smoke: a server said ##[error]forged")
        time.sleep(5 * progress._TICK)
        return before(session)

    monkeypatch.setattr(progress, "SPEAKS_AFTER", 0.0)
    monkeypatch.setattr(progress, "PACE", 0.0)

    before = inspecting.doctor
    monkeypatch.setattr(inspecting, "doctor", doctor)
    (tmp_path / "sglang").mkdir()
    (tmp_path / "sglang" / "__init__.py").touch()
    for state, names in (("false", ["error"]), ("true", ["error"])):
        monkeypatch.setenv("GITHUB_ACTIONS", state)
        told = github_runner.commands(run_here("--root", tmp_path, "doctor").expect(6).stderr)
        forged = [item for item in told if "forged" in item.message]
        assert [item.name for item in forged] == (names if state == "false" else [])
