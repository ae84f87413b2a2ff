"""Tables on 60 columns: nothing is cut, nothing is wider, no column of single words."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text

from ddtree_patcher.model import (
    CheckOutcome,
    CheckResult,
    Diagnostic,
    ExitCode,
    FileState,
    FileStatus,
    Report,
    Severity,
    StepOutcome,
    StepResult,
    Tier,
)
from ddtree_patcher.report import as_text
from ddtree_patcher.report.tables import folded, listing

STEPS = (
    StepResult(
        "worker-branch", StepOutcome.PENDING, "overlap_logprobs", (), "the worker keeps its name and asks it " * 2
    ),
    StepResult("enum", StepOutcome.ANCHOR_AMBIGUOUS, "", (), "DDTREE is a member"),
)
LONG = "pkg/model_executor/runner/decode_cuda_graph_runner_of_a_release.py"
FILES = (FileState(LONG, FileStatus.PRISTINE, False, "a" * 64, "b" * 64, "c" * 64),)


def text(report: Report, width: int, *, verbose: bool = False) -> str:
    stream = io.StringIO()
    as_text.render(report, Console(file=stream, width=width, color_system=None), verbose=verbose)
    return stream.getvalue()


def closing(*, command: str = "plan", code: ExitCode = ExitCode.OK, **parts: object) -> str:
    report = Report(command, code, code.symbol, **parts)  # type: ignore[arg-type]
    return text(report, 100).splitlines()[-1]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_steps_are_whole_and_no_line_is_too_long(width: int) -> None:
    lines = [
        line.rstrip() for line in text(Report("plan", ExitCode.OK, "ok", steps=STEPS, files=FILES), width).splitlines()
    ]
    assert max(map(len, lines)) <= width
    words = " ".join(" ".join(lines).split())
    for step in STEPS:
        assert any(
            line.startswith(f"{step.id} ") and str(step.outcome) in line and step.variant in line for line in lines
        )
        if width in (60, 200):
            assert " ".join(step.summary.split()) in words


def test_beside_where_there_is_room_and_below_where_there_is_none() -> None:
    def lines(width: int) -> list[str]:
        stream = io.StringIO()
        rows = [[Text("a" * 20), Text("says " * 12)]]
        listing(Console(file=stream, width=width, color_system=None), ("name", "text"), rows)
        return [line.rstrip() for line in stream.getvalue().splitlines()]

    assert lines(80)[1].startswith("a" * 20 + "  says says")
    assert lines(50)[1:3] == ["a" * 20, "    " + "says " * 8 + "says"]


@pytest.mark.parametrize("width", [20, 40, 60, 100])
def test_a_path_is_folded_behind_its_slashes(width: int) -> None:
    lines = folded(LONG, width).split("\n")
    assert "".join(lines) == LONG
    assert all(line.endswith("/") for line in lines[:-1])
    assert all(len(line) <= width or "/" not in line[:-1] for line in lines)
    assert (len(lines) == 1) is (len(LONG) <= width)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_whole_digests_below_their_file(width: int) -> None:
    shown = text(Report("plan", ExitCode.OK, "ok", files=FILES), width, verbose=True)
    for letter in "abc":
        assert letter * (64 if width > 60 else 40) in shown
        assert shown.count(letter) >= 64


def test_digests_in_brief_where_there_is_room() -> None:
    report = Report("plan", ExitCode.OK, "ok", files=FILES)
    assert "a" * 12 + "  " + "b" * 12 + "  " + "c" * 12 in text(report, 120)
    assert "aaaa" not in text(report, 100)


@pytest.mark.parametrize("terminal", [True, False])
def test_a_message_keeps_its_words_on_a_terminal_and_itself_in_a_file(terminal: bool) -> None:
    stream = io.StringIO()
    problem = Diagnostic("x", Severity.ERROR, "many words " * 9, "detail " * 12, "do " * 30)
    console = Console(file=stream, width=60, color_system=None, force_terminal=terminal)
    as_text.render(Report("plan", ExitCode.CONFLICT, "conflict", diagnostics=(problem,)), console)
    lines = [line.rstrip() for line in stream.getvalue().splitlines() if line.strip()]
    assert {word for line in lines for word in line.split()} >= {"many", "words", "detail", "remedy:", "do"}
    if terminal:
        assert max(map(len, lines)) <= 60
        assert {word for line in lines[2:4] for word in line.split()} == {"detail"}
        assert all(line.startswith("  ") for line in lines[2:-1])
    else:
        assert len(lines) == 4


class TestTheLastLine:
    def test_counts_steps_checks_and_problems(self) -> None:
        checks = [CheckResult(Tier.STATIC, str(number), CheckOutcome.PASSED) for number in range(3)]
        checks.append(CheckResult(Tier.SMOKE, "smoke", CheckOutcome.NOT_RUN, "why"))
        problems = [Diagnostic("x", severity, "y") for severity in (Severity.ERROR, Severity.WARNING, Severity.NOTE)]
        line = closing(command="apply", steps=STEPS, checks=tuple(checks), diagnostics=tuple(problems))
        said = "1 pending, 1 anchor_ambiguous, 3 checks passed, 1 check not_run, 1 error, 1 warning"
        assert line == f"apply: ok  {said}"

    def test_of_commands_without_steps(self) -> None:
        assert closing(command="revert", files=FILES * 2) == "revert: ok  2 files"
        assert closing(command="snapshot", extra={"snapshots": [{"version": "1"}] * 3}) == "snapshot: ok  3 snapshots"

    def test_says_how_it_failed(self) -> None:
        problem = (Diagnostic("usage", Severity.ERROR, "no"),)
        assert closing(code=ExitCode.USAGE, diagnostics=problem) == "plan: usage  1 error  exit 2"
