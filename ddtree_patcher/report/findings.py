"""What a report complains of, as a flat list: what SARIF, code quality, JUnit and annotations draw.

Each finding has a place and a fingerprint. Nothing in it depends on where the installation lies: the folder that holds
the package and the interpreter are taken out of every text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, replace
from hashlib import sha256
from pathlib import PurePosixPath

from ..model import CheckOutcome, CheckResult, Diagnostic, History, Place, Report, Severity
from .conflict_words import in_words

_NUMBERS = re.compile(r"(?<=:)\d+|\b(?<=line )\d+")  # of lines: they move while the finding stays the same
Portable = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Finding:
    """One complaint at one place."""

    said: Diagnostic  # its texts name no folder of this machine
    path: str  # relative to the folder that holds the package; the package itself where it is about no file
    line: int  # 1-based; 1 where it is about no line
    fingerprint: str  # 32 hex digits, different from that of any other finding, and the same when lines move

    @property
    def text(self) -> str:
        """All that is said: summary, what was expected and came near, detail and remedy, each on lines of its own."""
        remedy = f"Remedy: {self.said.remedy}" if self.said.remedy else ""
        return "\n".join(part for part in (self.said.summary, *in_words(self.said), self.said.detail, remedy) if part)


def findings_of(report: Report) -> tuple[Finding, ...]:
    """Every diagnostic, and every failed check that no diagnostic speaks of, in the report's own order."""
    portable = portable_in(report)
    package = PurePosixPath(str(report.installation.get("root", ""))).name or "."
    seen: Counter[str] = Counter()
    found = []
    for item in (*report.diagnostics, *_failed(report)):
        said = _portable_diagnostic(item, portable)
        key = "\0".join((said.code, said.step, said.path, said.expected, _NUMBERS.sub("", said.summary)))
        seen[key] += 1
        fingerprint = sha256(f"{key}\0{seen[key]}".encode()).hexdigest()[:32]
        about_a_file = bool(said.path) and not said.path.startswith("/")
        place = (said.path, max(said.line, 1)) if about_a_file else (package, 1)
        found.append(Finding(said, *place, fingerprint))
    return tuple(found)


def portable_in(report: Report) -> Portable:
    """A function that takes the installation's folder and the folder of its interpreter out of a text."""
    root, python = (str(report.installation.get(name, "")) for name in ("root", "python"))
    folder = str(PurePosixPath(root).parent)
    changes = []
    if len(folder) > 1:
        changes.append((re.compile(rf"(?<![\w/.-]){re.escape(folder)}(?:/|(?![\w.-]))"), ""))
    if python.startswith("/"):
        changes.append((re.compile(rf"(?<![\w/.-]){re.escape(python)}(?![\w/-])"), PurePosixPath(python).name))

    def portable(text: str) -> str:
        for pattern, instead in changes:
            text = pattern.sub(instead.replace("\\", r"\\"), text)
        return text.encode("utf-8", "backslashreplace").decode()  # names that are not UTF-8

    return portable


def _portable_diagnostic(item: Diagnostic, portable: Portable) -> Diagnostic:
    summary, detail, remedy = map(portable, (item.summary, item.detail, item.remedy))
    path, expected = portable(item.path), portable(item.expected)
    places = (_portable_place(place, portable) for place in item.candidates)
    history = History(*map(portable, astuple(item.history)))
    said = replace(item, summary=summary, detail=detail, remedy=remedy, path=path, expected=expected)
    return replace(said, candidates=tuple(places), history=history)


def _portable_place(place: Place, portable: Portable) -> Place:
    context = tuple((line, portable(text)) for line, text in place.context)
    return replace(place, path=portable(place.path), context=context)


def _failed(report: Report) -> Iterator[Diagnostic]:
    """Failed checks as diagnostics. Those of ``matrix`` sum up rows, whose diagnostics are there already."""
    told = {item.summary for item in report.diagnostics}
    for check in report.checks if not report.releases else ():
        if check.outcome is CheckOutcome.FAILED and check.complaint not in told:
            yield _of_check(check, report)


def _of_check(check: CheckResult, report: Report) -> Diagnostic:
    _, _, subject = check.id.partition(":")
    path = subject if subject in {item.path for item in report.files} else ""
    step = subject if subject in {item.id for item in report.steps} else ""
    return Diagnostic("verification_failed", Severity.ERROR, check.complaint, check.detail, step=step, path=path)
