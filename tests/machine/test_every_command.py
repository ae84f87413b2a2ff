"""Every command and every exit code, for real: what is printed and written is as the schemas say.

Each run asks for all files and events at once, and ``run_here`` holds the report itself against its schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click
import pytest

import sarif_schema
import schemas
from ddtree_patcher.cli import main
from ddtree_patcher.errors import Interrupted
from ddtree_patcher.lock import locked
from ddtree_patcher.model import ExitCode

SPEC_INFO = "sglang/srt/speculative/spec_info.py"
WITH_FILES = ("plan", "apply", "verify", "status", "diff", "doctor", "revert", "matrix")


class Runs:
    """``runs(code, *args)``: one command on one tree, with every file that it can write."""

    def __init__(self, run: Callable[..., Any], site: Path, folder: Path) -> None:
        self.run, self.site, self.folder = run, site, folder

    def __call__(self, code: int, *args: object, files: bool = True) -> Any:
        name = str(args[0])
        forms = ("junit", "sarif", "code-quality") if files and name in WITH_FILES else ()
        paths = {form: self.folder / form for form in (*forms, "events")}
        for path in paths.values():
            path.unlink(missing_ok=True)
        options = [word for form in forms for word in (f"--{form}", paths[form])]
        result = self.run("--root", self.site, "--events", paths["events"], *args, *options)
        report = result.expect(code).json
        assert report["schema"] == f"ddtree-patch.{name}/1"
        self.written(report, paths)
        return report

    def written(self, report: Any, paths: dict[str, Path]) -> None:
        if "junit" in paths:
            log, issues = (json.loads(paths[form].read_bytes()) for form in ("sarif", "code-quality"))
            assert sarif_schema.complaints(log) == []
            assert schemas.complaints(issues, "code-quality-1.json") == []
            (ran,) = log["runs"]
            assert len(ran["results"]) == len(issues) >= len(report["diagnostics"])
            assert ran["invocations"][0]["exitCode"] == report["exit_code"]
            assert not [text for text in map(str, (log, issues)) if str(self.site) in text]
            suite = ElementTree.parse(paths["junit"]).getroot()[0]
            bad = int(suite.get("failures", "")) + int(suite.get("errors", ""))
            assert bad or report["exit_code"] == 0
        told = [json.loads(line) for line in paths["events"].read_text("utf-8").splitlines()]
        assert [found for event in told for found in schemas.complaints(event, "events-1.json")] == []
        assert (told[0]["event"], told[-1]["event"]) == ("started", "finished")
        assert told[-1]["exit_code"] == report["exit_code"]
        times = [event["at"] for event in told]
        assert times == sorted(times)


@pytest.fixture
def runs(tree: Callable[..., Path], run_here: Callable[..., Any], tmp_path: Path) -> Runs:
    (tmp_path / "written").mkdir()
    return Runs(run_here, tree("0.5.18"), tmp_path / "written")


@contextmanager
def edited(site: Path) -> Iterator[None]:
    """The anchor of the first step is gone."""
    path = site / SPEC_INFO
    before = path.read_bytes()
    path.write_bytes(before.replace(b"DFLASH = auto()", b"OTHER = auto()"))
    yield
    path.write_bytes(before)


@pytest.mark.wheels
def test_a_life_from_clean_to_reverted(runs: Runs) -> None:
    runs(0, "doctor")
    runs(0, "status")
    runs(3, "status", "--check")
    runs(5, "verify")
    pending = runs(3, "plan", "--check", "--diff", "--out", runs.folder / "plan.json")
    assert schemas.complaints(json.loads((runs.folder / "plan.json").read_bytes())) == []
    assert pending["diff"].startswith("--- a/")
    runs(0, "apply", "--verify", "static")
    told = [json.loads(line) for line in (runs.folder / "events").read_text("utf-8").splitlines()]
    assert {event["event"] for event in told} == {"started", "progress", "step", "check", "finished"}
    runs(0, "status", "--check")
    verified = runs(0, "verify", "--tier", "static")
    told = [json.loads(line) for line in (runs.folder / "events").read_text("utf-8").splitlines()]
    ended = [(event["tier"], event["id"], event["outcome"]) for event in told if event["event"] == "check"]
    assert ended == [(check["tier"], check["id"], check["outcome"]) for check in verified["checks"]]
    runs(0, "revert")


@pytest.mark.wheels
def test_what_stands_in_the_way(runs: Runs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with edited(runs.site):
        report = runs(4, "plan")
        runs(4, "apply", "--verify", "static")
        runs(0, "doctor")
        runs(3, "diff", "--exit-code")
    assert report["steps"][0]["outcome"] == "anchor_missing"
    with locked(runs.site / "sglang", 0):
        runs(7, "apply")
    assert {event["event"] for event in map(json.loads, (runs.folder / "events").read_text().splitlines())} == {
        "started",
        "finished",
    }
    (tmp_path / "bare" / "sglang").mkdir(parents=True)
    (tmp_path / "bare" / "sglang" / "__init__.py").touch()
    bare = Runs(runs.run, tmp_path / "bare", runs.folder)
    bare(6, "plan")
    bare(6, "doctor")
    monkeypatch.setattr("ddtree_patcher.operations.verifying.verify", _raising(Interrupted("stopped by SIGINT")))
    runs(8, "verify")
    monkeypatch.setattr("ddtree_patcher.operations.inspecting.status", _raising(KeyboardInterrupt()))
    runs(8, "status")
    monkeypatch.setattr("ddtree_patcher.operations.planning.plan", _raising(ZeroDivisionError("x")))
    runs(1, "plan")


def _raising(error: BaseException) -> Callable[..., Any]:
    def fail(*args: object, **named: object) -> Any:
        raise error

    return fail


@pytest.mark.wheels
def test_matrix_and_snapshots(runs: Runs, wheel: Callable[[str], Path], run_cli: Callable[..., Any]) -> None:
    folder = wheel("0.5.18").parent
    wheel("0.5.9")
    report = runs(6, "matrix", "--wheels", folder, "0.5.9", "0.5.18", "--markdown", runs.folder / "m.md")
    assert [row["verdict"] for row in report["releases"]] == ["refused", "applies"]
    told = [json.loads(line) for line in (runs.folder / "events").read_text("utf-8").splitlines()]
    assert [event["version"] for event in told if event["event"] == "release"] == ["0.5.9", "0.5.18"]
    assert (runs.folder / "m.md").read_text("utf-8").startswith("# Supported releases")
    runs(0, "snapshot", "list")
    runs(0, "snapshot", "capture", "--out", runs.folder / "snapshot.json")
    assert schemas.complaints(json.loads((runs.folder / "snapshot.json").read_bytes())) == []
    runs(2, "snapshot", "show", "9.9")
    shown = run_cli("snapshot", "show", "0.5.18").expect(0).json
    assert shown["schema"] == "ddtree-patch.snapshot/1"


@pytest.mark.parametrize("command", main.list_commands(click.Context(main)))
def test_every_command_refuses_a_wrong_option(run_here: Callable[..., Any], command: str) -> None:
    report = run_here(command, "--bogus").expect(2).json
    assert report["schema"] == f"ddtree-patch.{command}/1"
    assert "--bogus" in report["diagnostics"][0]["summary"]


def test_a_command_line_without_a_command(run_here: Callable[..., Any]) -> None:
    for args in (("frobnicate",), ("--bogus",), ()):
        assert run_here(*args).expect(2).json["schema"] == "ddtree-patch.command-line/1"


def test_no_command_and_no_exit_code_was_missed() -> None:
    """Of the runs in this file, each of which must end with the code that it names."""
    source = Path(__file__).read_text("utf-8")
    seen = {(name, int(code)) for code, name in re.findall(r'\b(?:runs|bare)\((\d), "([a-z]+)"', source)}
    seen |= {(name, 2) for name in main.list_commands(click.Context(main))}
    assert set(WITH_FILES) | {"snapshot"} == {name for name, code in seen if code != 2}
    assert {code for _, code in seen} == {int(code) for code in ExitCode}
