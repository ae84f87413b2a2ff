"""SARIF, JUnit, code quality and annotations of any report: valid, complete, and nothing in them forges anything."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import github_runner
import sarif_schema
import schemas
from ddtree_patcher.model import (
    CheckOutcome,
    CheckResult,
    Diagnostic,
    ExitCode,
    FileState,
    FileStatus,
    History,
    PatchsetIdentity,
    Place,
    Report,
    Severity,
    StepOutcome,
    StepResult,
    Tier,
)
from ddtree_patcher.report import as_code_quality, as_github, as_json, as_junit, as_sarif
from ddtree_patcher.report.findings import findings_of

FACTS = {"root": "/s/site/pkg", "python": "/v/bin/py", "distribution": "d", "version": "1"}
CODES = schemas.published()["report-1.json"]["$defs"]["word"]["enum"]
NASTY = st.one_of(
    st.text(max_size=40),
    st.lists(
        st.sampled_from(
            [*"\n\r\t\0\x1b%:,|`<>]\ud800", "::error::", "::stop-commands::x", "##[error]", "]]>", "%0A", "a.py", "/s"]
        ),
        max_size=8,
    ).map("".join),
)
PLACES = st.builds(
    Place, NASTY, st.integers(0, 99), st.floats(0, 1), st.lists(st.tuples(st.integers(1, 9), NASTY), max_size=3)
)
DIAGNOSTICS = st.builds(
    Diagnostic,
    code=st.sampled_from(CODES),
    severity=st.sampled_from(Severity),
    summary=NASTY.map(lambda text: text or "x"),
    detail=NASTY,
    remedy=NASTY,
    step=st.sampled_from(["", "one", "two"]),
    path=st.one_of(st.just(""), NASTY, st.sampled_from(["/s/site/pkg/a.py", "pkg/a.py", "/etc/x"])),
    line=st.integers(0, 9999),
    expected=NASTY,
    candidates=st.lists(PLACES, max_size=3).map(tuple),
    history=st.builds(History, last_matched=st.sampled_from(["", "1.0"]), moved_to=NASTY),
)
STEPS = st.builds(StepResult, st.sampled_from(["one", "two"]), st.sampled_from(StepOutcome), NASTY, summary=NASTY)
CHECKS = st.builds(
    CheckResult,
    st.sampled_from(Tier),
    st.one_of(st.sampled_from(["compiles:pkg/a.py", "step:one"]), NASTY),
    st.sampled_from(CheckOutcome),
    NASTY.map(lambda text: text or "x"),
    st.floats(0, 9),
)
REPORTS = st.builds(
    Report,
    st.sampled_from(["plan", "apply", "verify", "status", "doctor"]),
    st.sampled_from(ExitCode),
    st.just("conflict"),
    installation=st.sampled_from(
        [{}, {"root": "/s/site/pkg", "python": "/v/bin/py", "distribution": "d", "version": "1"}]
    ),
    patchset=st.builds(PatchsetIdentity, NASTY, NASTY, NASTY),
    steps=st.lists(STEPS, max_size=3).map(tuple),
    files=st.just((FileState("pkg/a.py", FileStatus.FOREIGN, False),)),
    checks=st.lists(CHECKS, max_size=3).map(tuple),
    diagnostics=st.lists(DIAGNOSTICS, max_size=4).map(tuple),
)
GONE = Diagnostic(
    "anchor_missing",
    Severity.ERROR,
    "one: cannot find f in /s/site/pkg/a.py:7",
    "as /v/bin/py sees it",
    "Look there.",
    "one",
    "pkg/a.py",
    7,
    "def f(x)",
    (Place("pkg/b c.py", 12, 0.75, ((11, "# before"), (12, "def f(x, y):"))),),
    History("1.0", "1.1", "pkg/b c.py", "1.1"),
)
BROKEN = CheckResult(Tier.SMOKE, "step:two", CheckOutcome.FAILED, "no such flag\nat all", 1.5)
REPORT = Report(
    "apply",
    ExitCode.CONFLICT,
    "conflict",
    FACTS,
    PatchsetIdentity("p", "2", "ab" * 32),
    (StepResult("one", StepOutcome.ANCHOR_MISSING, summary="f | g"), StepResult("two", StepOutcome.PENDING, "v")),
    (FileState("pkg/a.py", FileStatus.FOREIGN, False),),
    (BROKEN, CheckResult(Tier.E2E, "e2e", CheckOutcome.NOT_RUN, "no torch")),
    (GONE, Diagnostic("partial", Severity.WARNING, "some", path="pkg/a.py"), Diagnostic("clean", Severity.NOTE, "hm")),
)
STATUSES = {"anchor_missing": "**Meaning:** it is `not` there."}


def sarif(report: Report) -> Any:
    return json.loads(as_sarif.render(report, "9.9", STATUSES))


def junit(report: Report) -> ElementTree.Element:
    suite = ElementTree.fromstring(as_junit.render(report)).find("testsuite")
    assert suite is not None
    return suite


# --- any report --------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(REPORTS)
def test_every_format_of_any_report(report: Report) -> None:
    found = findings_of(report)
    log, issues, suite = sarif(report), json.loads(as_code_quality.render(report)), junit(report)
    assert sarif_schema.complaints(log) == []
    assert schemas.complaints(issues, "code-quality-1.json") == []
    assert len(log["runs"][0]["results"]) == len(issues) == len(found)
    assert len({item["fingerprint"] for item in issues}) == len(issues)
    cases = suite.findall("testcase")
    counted = Counter(child.tag for case in cases for child in case if child.tag != "system-out")
    assert int(suite.get("tests", "")) == len(cases)
    for word, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.get(word, "")) == counted[tag]
    if report.exit_code is not ExitCode.OK:
        assert counted["failure"] + counted["error"]


@settings(max_examples=40)
@given(REPORTS)
def test_no_text_forges_a_command(report: Report) -> None:
    """What the runner reads is one command for each error and warning, with the texts whole."""
    told = [item for item in findings_of(report) if item.said.severity is not Severity.NOTE]
    lines = as_github.commands(report)
    assert len(lines) == len(told) and not [line for line in lines if "\n" in line or "\r" in line]
    read = github_runner.commands("\n".join(lines))
    assert Counter((item.name, item.message) for item in read) == Counter(
        (item.said.severity.value, item.text) for item in told
    )
    assert {key for item in read for key in item.properties} <= {"file", "line", "title"}
    assert github_runner.commands(as_json.render(report)) == []


@settings(max_examples=30)
@given(REPORTS, st.integers(0, 3000))
def test_the_summary_fits_and_ends_its_blocks(report: Report, room: int) -> None:
    data = as_github.summary(report, room)
    assert len(data) <= room
    assert data.count(b"````") % 2 == 0
    whole = as_github.summary(report)
    assert data == whole or not data or data.endswith(b"*The rest did not fit here: see the log.*\n\n")


# --- what each says ----------------------------------------------------------------------------------------------


def test_sarif() -> None:
    log = sarif(REPORT)
    assert sarif_schema.complaints(log) == []
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("ddtree-patch", "9.9")
    assert [rule["id"] for rule in driver["rules"]] == ["anchor_missing", "clean", "partial", "verification_failed"]
    assert driver["rules"][0]["help"] == {
        "text": "Meaning: it is not there. (docs/statuses.md#anchor_missing)",
        "markdown": "**Meaning:** it is `not` there.\n\n`docs/statuses.md#anchor_missing`",
    }
    assert run["invocations"] == [{"executionSuccessful": True, "exitCode": 4, "exitCodeDescription": "conflict"}]
    first, partial, clean, failed = run["results"]
    assert (first["ruleId"], first["level"]) == ("anchor_missing", "error")
    text = first["message"]["text"].splitlines()
    assert (text[0], text[-2:]) == ("one: cannot find f in pkg/a.py:7", ["as py sees it", "Remedy: Look there."])
    assert "Near (75% alike): pkg/b c.py:12" in text
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "pkg/a.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 7},
    }
    (near,) = first["relatedLocations"]
    assert near["message"]["text"] == "candidate, score 0.75"
    assert near["physicalLocation"] == {
        "artifactLocation": {"uri": "pkg/b%20c.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 12},
        "contextRegion": {"startLine": 11, "endLine": 12, "snippet": {"text": "# before\ndef f(x, y):"}},
    }
    assert (first["properties"]["expected"], first["properties"]["history"]["moved_to"]) == ("def f(x)", "pkg/b c.py")
    assert (partial["level"], clean["level"]) == ("warning", "note")
    assert clean["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "pkg"
    assert failed["message"]["text"] == "smoke check step:two failed\nno such flag\nat all"
    assert failed["properties"]["step"] == "two"


def test_sarif_of_a_refusal_did_not_succeed() -> None:
    refused = replace(REPORT, exit_code=ExitCode.LOCKED)
    assert sarif(refused)["runs"][0]["invocations"][0]["executionSuccessful"] is False


def test_the_schema_of_sarif_can_refuse() -> None:
    log = sarif(REPORT)
    log["runs"][0]["results"][0]["level"] = "bad"
    del log["runs"][0]["tool"]["driver"]["name"]
    said = "\n".join(sarif_schema.complaints(log))
    assert "'bad' is not one of" in said and "'name' is a required property" in said


def test_a_failed_check_that_a_diagnostic_tells_of_is_one_finding() -> None:
    told = Diagnostic("verification_failed", Severity.ERROR, BROKEN.complaint, BROKEN.detail)
    once = findings_of(replace(REPORT, diagnostics=(told,)))
    assert [item.said.summary for item in once] == ["smoke check step:two failed"]
    assert [item.said.code for item in findings_of(replace(REPORT, diagnostics=()))] == ["verification_failed"]


def test_a_fingerprint_keeps_while_lines_move_and_differs_otherwise() -> None:
    def print_of(item: Diagnostic) -> str:
        return findings_of(replace(REPORT, diagnostics=(item,), checks=()))[0].fingerprint

    assert print_of(GONE) == print_of(replace(GONE, line=99, summary=GONE.summary.replace(":7", ":99"), candidates=()))
    others = [replace(GONE, code="foreign"), replace(GONE, path="pkg/b.py"), replace(GONE, step="two")]
    assert len({print_of(item) for item in [GONE, replace(GONE, summary="else"), *others]}) == 5
    twice = findings_of(replace(REPORT, diagnostics=(GONE, GONE), checks=()))
    assert twice[0].fingerprint != twice[1].fingerprint


def test_no_format_but_json_depends_on_the_place() -> None:
    moved = json.loads(json.dumps(dict(REPORT.installation)).replace("/s/site", "/o/t h").replace("/v/bin", "/w"))
    texts = {"summary": "one: cannot find f in /o/t h/pkg/a.py:7", "detail": "as /w/py sees it"}
    other = replace(REPORT, installation=moved, diagnostics=(replace(GONE, **texts), *REPORT.diagnostics[1:]))
    assert as_sarif.render(REPORT, "1", {}) == as_sarif.render(other, "1", {})
    assert as_junit.render(REPORT) == as_junit.render(other)
    assert as_code_quality.render(REPORT) == as_code_quality.render(other)
    assert as_github.commands(REPORT) == as_github.commands(other)


@pytest.mark.parametrize(
    ("text", "portable"),
    [
        ("/s/site/pkg: clean", "pkg: clean"),
        ("in /s/site", "in "),
        ("/s/site2/pkg and /mnt/s/site/pkg", "/s/site2/pkg and /mnt/s/site/pkg"),
        ("by /v/bin/py, not /v/bin/py3/x", "by py, not /v/bin/py3/x"),
    ],
)
def test_only_the_folder_itself_is_taken_out(text: str, portable: str) -> None:
    (found,) = findings_of(replace(REPORT, diagnostics=(replace(GONE, summary=text),), checks=()))
    assert found.said.summary == portable


def test_code_quality() -> None:
    issues = json.loads(as_code_quality.render(REPORT))
    assert [item["severity"] for item in issues] == ["critical", "minor", "info", "critical"]
    assert issues[0]["location"] == {"path": "pkg/a.py", "lines": {"begin": 7}}
    assert issues[2]["location"] == {"path": "pkg", "lines": {"begin": 1}}


def test_junit_has_steps_checks_and_other_errors() -> None:
    report = replace(
        REPORT, diagnostics=(*REPORT.diagnostics, Diagnostic("foreign", Severity.ERROR, "theirs", path="x"))
    )
    cases = {(case.get("classname"), case.get("name")): case for case in junit(report)}
    assert list(cases) == [
        ("ddtree-patch.smoke", "step:two"),
        ("ddtree-patch.e2e", "e2e"),
        ("ddtree-patch.step", "one"),
        ("ddtree-patch.step", "two"),
        ("ddtree-patch.apply", "foreign:x"),
    ]
    failure = cases["ddtree-patch.step", "one"].find("failure")
    assert failure is not None and failure.get("message") == "one: cannot find f in pkg/a.py:7"
    assert failure.text is not None and failure.text.startswith("pkg/a.py:7: one: cannot find f")
    assert cases["ddtree-patch.step", "two"].find("failure") is None


def test_junit_of_what_is_refused_is_an_error() -> None:
    suite = junit(replace(REPORT, exit_code=ExitCode.LOCKED, steps=(), checks=()))
    assert (suite.get("errors"), suite.get("failures")) == ("1", "0")


def test_junit_is_never_green_where_the_exit_code_is_not() -> None:
    changes = Report("status", ExitCode.CHANGES, "clean")
    (case,) = junit(changes)
    assert (case.get("name"), case[0].tag, case[0].get("message")) == ("clean", "failure", "clean, exit 3")


def test_annotations_and_summary() -> None:
    first, second, third = github_runner.commands("\n".join(as_github.commands(REPORT)))
    assert (first.name, first.properties) == (
        "error",
        {"file": "pkg/a.py", "line": "7", "title": "ddtree-patch anchor_missing"},
    )
    assert (second.name, third.name, third.properties["title"]) == (
        "error",
        "warning",
        "ddtree-patch partial",
    )
    text = as_github.summary(REPORT).decode()
    lines = text.splitlines()
    assert lines[0] == "### ddtree-patch apply: conflict (exit 4)"
    assert "| one | anchor\\_missing |  | f \\| g |" in lines and "| smoke | 0 | 1 | 0 |" in lines
    assert text.index("cannot find f") < text.index("| step |") < text.index("**note**")


def test_a_name_with_separators_stays_one_name() -> None:
    odd = replace(GONE, path="a,line=1:b::c\n::error::d%2C", line=3)
    (read,) = github_runner.commands("\n".join(as_github.commands(replace(REPORT, diagnostics=(odd,), checks=()))))
    assert (read.properties["file"], read.properties["line"]) == (odd.path, "3")
