"""JUnit XML, as CI systems read it: a test case per check."""

from __future__ import annotations

from xml.etree import ElementTree

from ..model import CheckOutcome, Report


def render(report: Report) -> bytes:
    """One suite; a check that was not run is ``skipped`` with its reason, the only word that JUnit has for it."""
    failed = sum(item.outcome is CheckOutcome.FAILED for item in report.checks)
    not_run = sum(item.outcome is CheckOutcome.NOT_RUN for item in report.checks)
    suite = ElementTree.Element(
        "testsuite",
        name=f"ddtree-patch {report.command}",
        tests=str(len(report.checks)),
        failures=str(failed),
        skipped=str(not_run),
        errors="0",
        time=f"{sum(item.seconds for item in report.checks):.3f}",
    )
    for check in report.checks:
        case = ElementTree.SubElement(
            suite, "testcase", classname=f"ddtree-patch.{check.tier}", name=check.id, time=f"{check.seconds:.3f}"
        )
        if check.outcome is CheckOutcome.FAILED:
            ElementTree.SubElement(case, "failure", message=check.detail[:200]).text = check.detail
        elif check.outcome is CheckOutcome.NOT_RUN:
            ElementTree.SubElement(case, "skipped", message=check.detail)
        if check.rows:
            lines = (", ".join(f"{name}={value}" for name, value in row.items()) for row in check.rows)
            ElementTree.SubElement(case, "system-out").text = "\n".join(lines)
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return bytes(ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)) + b"\n"
