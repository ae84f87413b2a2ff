"""Files and events that were asked for: refused before anything is done, or written however the command ends."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FORMS = ("junit", "sarif", "code-quality")
COMMANDS = ("plan", "apply", "verify", "status", "diff", "doctor", "revert", "matrix")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package that no patchset suits: whatever is done to it ends at once."""
    folder = tmp_path / "site" / "sglang"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    return folder


@pytest.fixture
def at_work(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands that began their work."""
    begun: list[str] = []
    for place, name in (
        ("applying.apply", "apply"),
        ("planning.plan", "plan"),
        ("verifying.verify", "verify"),
        ("inspecting.status", "status"),
        ("inspecting.doctor", "doctor"),
        ("diffing.diff", "diff"),
        ("reverting.revert", "revert"),
        ("surveying.survey", "matrix"),
    ):
        monkeypatch.setattr(
            f"ddtree_patcher.operations.{place}", lambda *args, _name=name, **named: begun.append(_name)
        )
    return begun


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("command", COMMANDS)
def test_what_cannot_be_written_is_refused_before_anything_is_done(
    run_here: Callable[..., Any], package: Path, tmp_path: Path, at_work: list[str], command: str, form: str
) -> None:
    for path, says in (
        (tmp_path / "no" / "x", "there is no such folder"),
        (tmp_path, "it is a folder"),
        ("-", "standard output is the report's own: name a file"),
    ):
        report = run_here("--root", package, command, f"--{form}", path).expect(2).json
        assert f"{path} cannot be written: {says}" in report["diagnostics"][0]["summary"]
    assert not at_work and not (tmp_path / "no").exists()


@pytest.mark.parametrize("path", ["no/folder/x", "."])
def test_events_that_cannot_be_written_are_refused_before_anything_is_done(
    run_here: Callable[..., Any], package: Path, at_work: list[str], path: str
) -> None:
    report = run_here("--root", package, "--events", path, "apply").expect(2).json
    assert f"{path} cannot be written" in report["diagnostics"][0]["summary"]
    assert not at_work


def test_a_pipe_that_nobody_reads_is_refused(run_here: Callable[..., Any], package: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    report = run_here("--root", package, "--events", tmp_path / "pipe", "status").expect(2).json
    assert "cannot be written" in report["diagnostics"][0]["summary"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_file_of_somebody_else(run_here: Callable[..., Any], package: Path, tmp_path: Path) -> None:
    (tmp_path / "x").touch(0o400)
    says = run_here("--root", package, "status", "--sarif", tmp_path / "x").expect(2).json["diagnostics"][0]["summary"]
    assert "this user may not write to it" in says


def test_one_file_for_two_formats(run_here: Callable[..., Any], package: Path, tmp_path: Path) -> None:
    options = ("--sarif", tmp_path / "x", "--junit", tmp_path / "x")
    report = run_here("--root", package, "status", *options).expect(2).json
    assert "is named twice" in report["diagnostics"][0]["summary"] and not (tmp_path / "x").exists()


@pytest.mark.parametrize("form", FORMS)
def test_a_full_disk_hides_nothing_and_is_no_success(run_here: Callable[..., Any], package: Path, form: str) -> None:
    report = run_here("--root", package, "status", f"--{form}", "/dev/full").expect(2).json
    assert (report["exit_name"], report["installation"]["root"]) == ("usage", str(package))
    assert report["diagnostics"][-1]["code"] == "output_lost"
    assert "/dev/full cannot be written: No space left" in report["diagnostics"][-1]["summary"]


def test_a_full_disk_does_not_take_the_place_of_a_refusal(run_here: Callable[..., Any], package: Path) -> None:
    report = run_here("--root", package, "plan", "--sarif", "/dev/full").expect(6).json
    assert [item["code"] for item in report["diagnostics"]] == ["environment_refused", "output_lost"]


def test_events_on_a_full_disk_change_nothing_else(run_here: Callable[..., Any], package: Path) -> None:
    report = run_here("--root", package, "--events", "/dev/full", "status").expect(0).json
    (lost,) = [item for item in report["diagnostics"] if item["code"] == "output_lost"]
    assert (lost["severity"], lost["summary"]) == ("warning", "events are missing: No space left on device")


def test_a_reader_of_events_that_leaves_changes_nothing_else(
    run_here: Callable[..., Any], package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    from ddtree_patcher.operations import inspecting

    before = inspecting.status
    heard: list[bytes] = []

    def leave(*args: Any, **named: Any) -> Any:
        heard.append(os.read(reader, 4096))
        os.close(reader)
        return before(*args, **named)

    monkeypatch.setattr(inspecting, "status", leave)
    report = run_here("--root", package, "--events", tmp_path / "pipe", "status").expect(0).json
    assert json.loads(heard[0])["event"] == "started"  # it was there before the work began
    assert "events are missing: Broken pipe" in [item["summary"] for item in report["diagnostics"]]


def test_events_on_standard_error_are_alone_there(run_cli: Callable[..., Any], package: Path) -> None:
    result = run_cli("--root", package, "--events", "-", "doctor").expect(6)
    events = [json.loads(line) for line in result.stderr.splitlines()]
    assert [event["event"] for event in events][:1] == ["started"] and events[-1]["exit_code"] == 6
    assert result.json["exit_code"] == 6


def test_a_command_line_that_is_refused_later_leaves_no_file(
    run_here: Callable[..., Any], package: Path, tmp_path: Path
) -> None:
    options = ("--step", "enum", "--sarif", tmp_path / "x")
    report = run_here("--root", package, "apply", "plan.json", *options).expect(2).json
    assert report["schema"] == "ddtree-patch.apply/1" and not (tmp_path / "x").exists()
