"""The rows of ``matrix``, drawn: as a table, as JSON, and as a page that says the same from run to run."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from ddtree_patcher.model import (
    Capability,
    CheckOutcome,
    CheckResult,
    Diagnostic,
    ExitCode,
    PatchsetIdentity,
    ReleaseResult,
    ReleaseVerdict,
    Report,
    Severity,
    StepOutcome,
    StepResult,
    Tier,
)
from ddtree_patcher.report import as_json, as_markdown, as_text
from ddtree_patcher.report.releases import spans, word_of

LINES = ("1.0", "1.1", "1.2", "1.3", "1.4")
GRAMMAR = Capability("grammar", "grammar", {"1.0": ("t.py::works",)}, {"1.1": ("t.py::no",)})
BOTH = Capability("pages", "pages > 1", {"1.1": ("t.py::works",)}, {"1.1": ("t.py::no",)})
GOOD = ReleaseResult(
    "1.0",
    ReleaseVerdict.APPLIES,
    "pkg-1.0.whl",
    "ab" * 32,
    {"standing": "known"},
    (StepResult("one", StepOutcome.PENDING, "list"), StepResult("two", StepOutcome.NOT_NEEDED, "free")),
    (CheckResult(Tier.STATIC, "x", CheckOutcome.PASSED, seconds=1.25),) * 3,
)
BAD = ReleaseResult(
    "1.1",
    ReleaseVerdict.CONFLICT,
    "pkg-1.1.whl",
    "cd" * 32,
    {"standing": "unproved"},
    (StepResult("one", StepOutcome.ANCHOR_MISSING), StepResult("two", StepOutcome.BLOCKED_BY)),
    (),
    (
        Diagnostic("anchor_missing", Severity.ERROR, "one: cannot find a | b", "near", "do", "one", "pkg/a.py", 7),
        Diagnostic("blocked_by", Severity.NOTE, "two waits for one", step="two"),
    ),
)
REPORT = Report(
    "matrix",
    ExitCode.CONFLICT,
    "conflict",
    patchset=PatchsetIdentity("p", "2", "0123456789abcdef"),
    releases=(GOOD, BAD),
    capabilities=(GRAMMAR, BOTH),
)


def text(report: Report = REPORT, **how: bool) -> str:
    stream = io.StringIO()
    as_text.render(report, Console(file=stream, width=160, color_system=None), **how)
    return stream.getvalue()


def test_a_row_a_release() -> None:
    lines = [line.split() for line in text().splitlines()]
    assert ["1.0", "applies", "1", "pending,", "1", "not_needed", "3", "passed", "yes", "–"] in lines
    assert ["1.1", "conflict", "1", "anchor_missing,", "1", "blocked_by", "-", "refused", "partly"] in lines
    assert "matrix: conflict  p 2 (0123456789ab)  1 applies, 1 conflict  exit 4" in text()


def test_variants_are_told_to_those_who_ask() -> None:
    assert "list" not in text()
    assert ["one", "list", "pending", "1.0"] in [line.split() for line in text(verbose=True).splitlines()]


def test_quiet_leaves_the_closing_line() -> None:
    assert text(quiet=True).strip() == text().splitlines()[-1].strip()


def test_json_has_every_row_whole() -> None:
    good, bad = as_json.envelope(REPORT)["releases"]
    assert (good["version"], good["verdict"], good["exit_code"], good["wheel_sha256"]) == (
        "1.0",
        "applies",
        0,
        "ab" * 32,
    )
    assert [(step["id"], step["outcome"], step["variant"]) for step in good["steps"]] == [
        ("one", "pending", "list"),
        ("two", "not_needed", "free"),
    ]
    assert len(good["checks"]) == 3
    assert (bad["exit_code"], bad["release"]) == (4, {"standing": "unproved"})
    assert [(item["code"], item["path"], item["line"]) for item in bad["diagnostics"]] == [
        ("anchor_missing", "pkg/a.py", 7),
        ("blocked_by", "", 0),
    ]
    assert as_json.envelope(REPORT)["capabilities"][0]["shown"] == {"1.0": ("t.py::works",)}


def test_other_commands_have_no_rows() -> None:
    assert not {"releases", "capabilities"} & set(as_json.envelope(Report("plan", ExitCode.OK, "ok")))


def test_the_page() -> None:
    page = as_markdown.render(REPORT)
    for line in (
        "| release | verdict | steps | static checks | grammar | pages > 1 |",
        "| 1.0 | `applies` | 1 pending, 1 not_needed | 3 passed | yes | – |",
        "| 1.1 | `conflict` | 1 anchor_missing, 1 blocked_by | – | refused | partly |",
        "- **1.1** one: cannot find a \\| b (`pkg/a.py:7`)",
        "| one | list | pending | 1.0 |",
        "| grammar | works | `t.py::works` | 1.0 |",
        "| pages > 1 | refused | `t.py::no` | 1.1 |",
    ):
        assert f"{line}\n" in page
    assert page.endswith("|\n") and "waits for" not in page


def test_the_page_says_nothing_that_changes_from_run_to_run() -> None:
    slower = replace(GOOD, checks=tuple(replace(check, seconds=99.0) for check in GOOD.checks))
    other = replace(REPORT, releases=(slower, BAD), patchset=replace(REPORT.patchset, digest="f" * 64))
    assert as_markdown.render(other) == as_markdown.render(REPORT)


def test_a_page_without_capabilities_claims_nothing() -> None:
    page = as_markdown.render(replace(REPORT, capabilities=()))
    assert "| release | verdict | steps | static checks |\n" in page
    assert "yes" not in page and "Which tests" not in page


@pytest.mark.parametrize(("version", "word"), [("1.0", "yes"), ("1.1", "refused"), ("1.2", "–")])
def test_what_tests_showed(version: str, word: str) -> None:
    assert word_of(GRAMMAR, version) == word


@pytest.mark.parametrize(
    ("versions", "words"),
    [
        ("1.0 1.1 1.2 1.3 1.4", "1.0 … 1.4"),
        ("1.2", "1.2"),
        ("1.0 1.2 1.3", "1.0, 1.2 … 1.3"),
        ("1.0 1.1 1.4", "1.0 … 1.1, 1.4"),
        ("1.1 1.3", "1.1, 1.3"),
        ("", ""),
    ],
)
def test_neighbours_are_drawn_together(versions: str, words: str) -> None:
    assert spans(versions.split(), LINES) == words
