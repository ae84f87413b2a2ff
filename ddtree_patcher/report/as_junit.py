"""JUnit XML, as CI systems read it: a test case for every check, step and other complaint."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from ..model import CheckOutcome, ExitCode, Report, Severity
from .findings import Finding, Portable, findings_of, portable_in

# What these find out is said by their checks alone; other commands have steps that fit or do not.
_CHECKS_ALONE = ("verify", "matrix")
_FOUND = (ExitCode.CHANGES, ExitCode.CONFLICT, ExitCode.VERIFICATION_FAILED)  # other codes are errors in JUnit's sense
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class _Case:
    group: str  # its class name is ddtree-patch.<group>
    name: str
    seconds: float = 0.0
    bad: str = ""  # ``failure``, ``error`` or ``skipped``; empty when it passed
    message: str = ""
    text: str = ""
    output: str = ""


def render(report: Report) -> bytes:
    """One suite; a check that was not run is ``skipped`` with its reason, the only word that JUnit has for it."""
    cases = [*_cases(report)]
    if report.exit_code is not ExitCode.OK and not any(case.bad in ("failure", "error") for case in cases):
        said = f"{report.outcome}, exit {int(report.exit_code)}"
        cases.append(_Case(report.command, report.outcome, bad=_kind(report), message=said, text=said))
    suite = ElementTree.Element(
        "testsuite",
        name=f"ddtree-patch {report.command}",
        tests=str(len(cases)),
        failures=str(sum(case.bad == "failure" for case in cases)),
        skipped=str(sum(case.bad == "skipped" for case in cases)),
        errors=str(sum(case.bad == "error" for case in cases)),
        time=f"{sum(case.seconds for case in cases):.3f}",
    )
    for case in cases:
        _draw(case, suite)
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return bytes(ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)) + b"\n"


def _cases(report: Report) -> Iterator[_Case]:
    portable = portable_in(report)
    yield from _checks(report, portable)
    if report.command in _CHECKS_ALONE and report.checks:
        return
    found = findings_of(report)
    yield from _steps(report, found)
    told = {step.id for step in report.steps if step.outcome.is_conflict} | {check.complaint for check in report.checks}
    for item in (item for item in found if item.said.severity is Severity.ERROR):
        if item.said.step not in told and item.said.summary not in told:
            name = f"{item.said.code}:{item.said.path}" if item.said.path else item.said.code
            yield _Case(report.command, name, bad=_kind(report), message=item.said.summary, text=item.text)


def _steps(report: Report, found: Sequence[Finding]) -> Iterator[_Case]:
    for step in report.steps:
        if not step.outcome.is_conflict:
            yield _Case("step", step.id, output=str(step.outcome))
            continue
        mine = [item for item in found if item.said.step == step.id]
        message = mine[0].said.summary if mine else str(step.outcome)
        text = "\n".join(f"{item.path}:{item.line}: {item.text}" for item in mine)
        yield _Case("step", step.id, bad="failure", message=message, text=text or message)


def _checks(report: Report, portable: Portable) -> Iterator[_Case]:
    words = {CheckOutcome.FAILED: "failure", CheckOutcome.NOT_RUN: "skipped"}
    for check in report.checks:
        detail = portable(check.detail)
        rows = (", ".join(f"{name}={value}" for name, value in row.items()) for row in check.rows)
        text = detail if check.outcome is CheckOutcome.FAILED else ""
        message = detail[:200] if check.outcome is CheckOutcome.FAILED else detail
        bad, output = words.get(check.outcome, ""), "\n".join(rows)
        yield _Case(str(check.tier), check.id, check.seconds, bad, message, text, output)


def _kind(report: Report) -> str:
    return "failure" if report.exit_code in _FOUND else "error"


def _draw(case: _Case, suite: ElementTree.Element) -> None:
    names = {"classname": f"ddtree-patch.{case.group}", "name": _xml(case.name), "time": f"{case.seconds:.3f}"}
    element = ElementTree.SubElement(suite, "testcase", names)
    if case.bad:
        said = ElementTree.SubElement(element, case.bad, message=_xml(case.message))
        said.text = _xml(case.text) or None
    if case.output:
        ElementTree.SubElement(element, "system-out").text = _xml(case.output)


def _xml(text: str) -> str:
    """Without the characters that XML 1.0 cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
