"""What GitHub Actions reads: annotations as workflow commands, and the summary of a step as Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from ..model import CheckOutcome, CheckResult, Report, Severity
from .conflict_words import in_words
from .findings import Finding, findings_of

LIMIT = 1024 * 1024  # bytes of a step's summary; GitHub drops one that is larger
_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning"}
_DETAIL = 4000  # characters of what is told beside the summary and the remedy, in the summary


def commands(report: Report) -> list[str]:
    """A workflow command for every error and every warning: GitHub shows ten of each and drops the others."""
    found = findings_of(report)
    return [_command(item) for severity in _COMMANDS for item in found if item.said.severity is severity]


def _command(item: Finding) -> str:
    said = item.said
    names = {"file": said.path, "line": str(said.line or ""), "title": f"ddtree-patch {said.code}"}
    properties = ",".join(f"{name}={_property(value)}" for name, value in names.items() if value)
    return f"::{_COMMANDS[said.severity]} {properties}::{_message(item.text)}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def summary(report: Report, room: int = LIMIT) -> bytes:
    """The report in at most ``room`` bytes: what does not fit is left out from the end, and the last line says so."""
    text = "\n".join(_lines(report)) + "\n\n"
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= room:
        return data
    end = b"\n\n*The rest did not fit here: see the log.*\n\n"
    whole = data[: max(room - len(end), 0)].rpartition(b"\n\n")[0]
    fence = b"\n````" if whole.count(b"````") % 2 else b""
    return (whole + fence + end)[:room] if room >= len(end) else b""


def _lines(report: Report) -> Iterator[str]:
    good = "passed" if not report.exit_code else f"exit {int(report.exit_code)}"
    yield f"### ddtree-patch {report.command}: {report.outcome} ({good})"
    facts, identity = report.installation, report.patchset
    what = [_plain(f"{facts['distribution']} {facts['version']}")] if facts else []
    what += [f"{_plain(f'patchset {identity.id} {identity.version}')} ({identity.digest[:12]})"] if identity.id else []
    if what:
        yield from ("", ", ".join(what))
    found = findings_of(report)
    for item in found:
        if item.said.severity is not Severity.NOTE:
            yield from _finding(item)
    if report.releases:
        yield from _table(("release", "verdict"), ((row.version, str(row.verdict)) for row in report.releases))
    if report.steps:
        rows = ((step.id, str(step.outcome), step.variant, step.summary) for step in report.steps)
        yield from _table(("step", "outcome", "variant", "what it does"), rows)
    if report.checks and not report.releases:
        yield from _table(("checks", *map(str, CheckOutcome)), _counted(report.checks))
    for item in found:
        if item.said.severity is Severity.NOTE:
            yield from _finding(item)


def _counted(checks: Iterable[CheckResult]) -> Iterator[tuple[str, ...]]:
    counts = Counter((check.tier, check.outcome) for check in checks)
    for tier in dict.fromkeys(tier for tier, _ in counts):
        yield (str(tier), *(str(counts[tier, outcome]) for outcome in CheckOutcome))


def _finding(item: Finding) -> Iterator[str]:
    said = item.said
    place = f" at `{_code(said.path)}{f':{said.line}' if said.line else ''}`" if said.path else ""
    yield from ("", f"**{said.severity}** `{_code(said.code)}`{place}: {_plain(said.summary)}")
    if text := "\n".join([*in_words(said), *said.detail.splitlines()]):
        text = text if len(text) <= _DETAIL else f"{text[:_DETAIL]} …"
        yield from ("", "````text", re.sub("`{4,}", "```", text), "````")
    if said.remedy:
        yield from ("", f"Remedy: {_plain(said.remedy)}")


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    names = list(columns)
    yield from ("", f"| {' | '.join(names)} |", f"|{'---|' * len(names)}")
    for row in rows:
        yield f"| {' | '.join(map(_escaped, row))} |"


def _plain(text: str) -> str:
    """A text in one line that Markdown draws as it is, but for what stands in backticks: that is code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # one is left over
        return _escaped(text)
    return "".join(f"`{_code(part)}`" if number % 2 and part else _escaped(part) for number, part in enumerate(parts))


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|#~&])", r"\\\1", re.sub(r"\s+", " ", text))


def _code(text: str) -> str:
    return " ".join(text.replace("`", "'").split())
