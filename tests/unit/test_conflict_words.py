"""A conflict reads the same wherever it is drawn: on a terminal, in an annotation, in a summary, in JUnit."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from ddtree_patcher.model import Diagnostic, ExitCode, History, Place, Report, Severity, StepOutcome, StepResult
from ddtree_patcher.report import as_code_quality, as_github, as_junit, as_text
from ddtree_patcher.report.conflict_words import history_in_words, in_words

NEAR = Place("pkg/a.py", 9, 0.875, ((8, "    if ready:"), (9, "        start(1)"), (10, "")))
FAR = tuple(Place("pkg/b.py", line, 0.7, ((line, f"start({line})"), (line + 1, "stop()"))) for line in (3, 20))
CONFLICT = Diagnostic(
    "anchor_missing",
    Severity.ERROR,
    "begin: cannot find `start()`",
    remedy="Look there.",
    step="begin",
    path="pkg/a.py",
    line=9,
    expected="# in main\nstart()",
    candidates=(NEAR, *FAR),
    history=History("1.2", "1.3", "pkg/c.py", "1.3"),
)
TOLD = [
    "Expected:",
    "    # in main",
    "    start()",
    "Near (88% alike): pkg/a.py:9",
    "       8 | if ready:",
    "    >  9 |     start(1)",
    "      10 |",
    "Near (70% alike): pkg/b.py:3",
    "    > 3 | start(3)",
    "      4 | stop()",
    "Near (70% alike): pkg/b.py:20",
    "    > 20 | start(20)",
    "History: moved to pkg/c.py since 1.3; it last fits 1.2, and first fails in 1.3",
]
REPORT = Report(
    "plan",
    ExitCode.CONFLICT,
    "conflict",
    steps=(StepResult("begin", StepOutcome.ANCHOR_MISSING),),
    diagnostics=(CONFLICT,),
)


def test_the_words_of_a_conflict() -> None:
    assert list(in_words(CONFLICT)) == TOLD


def test_what_is_no_conflict_has_none() -> None:
    assert list(in_words(Diagnostic("partial", Severity.WARNING, "only a part"))) == []


@pytest.mark.parametrize(
    ("history", "words"),
    [
        (History(), ""),
        (History("1.2", "1.2"), "it fits 1.2 as that was published, and first fails in this tree"),
        (History("1.2", "1.2", "pkg/c.py", "1.2"), "moved to pkg/c.py in this tree; it fits 1.2 as that was published"),
        (History(moved_to="pkg/c.py"), "moved to pkg/c.py"),
    ],
)
def test_what_is_not_known_is_not_said(history: History, words: str) -> None:
    assert history_in_words(history).startswith(words) and bool(words) == bool(history_in_words(history))


def test_every_form_tells_all_of_it() -> None:
    console = Console(file=io.StringIO(), width=200)
    as_text.render(REPORT, console)
    drawn = {
        "annotation": as_github.commands(REPORT)[0].replace("%0A", "\n").replace("%25", "%"),
        "summary": as_github.summary(REPORT).decode(),
        "junit": as_junit.render(REPORT).decode().replace("&gt;", ">"),
        "code quality": as_code_quality.render(REPORT).decode().replace("\\n", "\n"),
    }
    for form, text in drawn.items():
        assert [line for line in TOLD if line not in text] == [], form
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue().lower()
    assert [line for line in TOLD if line.strip(" :").replace("): ", ") ").lower() not in text] == []
