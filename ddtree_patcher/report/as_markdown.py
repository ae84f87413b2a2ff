"""The table of ``matrix`` as a Markdown page. It says nothing that changes from run to run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..model import Capability, ReleaseResult, Report
from .releases import checks_of, reasons_of, spans, steps_of, variants_of, word_of


def render(report: Report) -> str:
    """One page: a row a release, what blocks the others, the variant of each step, and which tests show what."""
    identity = report.patchset
    return "\n".join(
        [
            "# Supported releases",
            "",
            f"What the patchset `{identity.id}` {identity.version} does to each release, from its wheel alone:",
            "every step is planned, and the static checks run on what it would write.",
            *_releases(report),
            *_reasons(report.releases),
            *_variants(report.releases),
            *_tests(report),
            "",
        ]
    )


def _releases(report: Report) -> Iterator[str]:
    columns = [item.title for item in report.capabilities]
    yield ""
    yield from _table(
        ["release", "verdict", "steps", "static checks", *columns],
        (
            [
                row.version,
                f"`{row.verdict}`",
                steps_of(row) or "–",
                checks_of(row) or "–",
                *(word_of(item, row.version) for item in report.capabilities),
            ]
            for row in report.releases
        ),
    )
    if columns:
        yield ""
        yield "*yes*: a test that ran on the release shows it. *partly*: that, and another test shows that a part of it"
        yield "is refused. *refused*: a test shows that it is refused, with a message. *–*: no test shows anything."


def _reasons(rows: Sequence[ReleaseResult]) -> Iterator[str]:
    said = [(row.version, *reason) for row in rows for reason in reasons_of(row)]
    if said:
        yield from ("", "## What stands in the way", "")
        for version, summary, place in said:
            yield f"- **{version}** {_escaped(summary)}{f' (`{place}`)' if place and place not in summary else ''}"


def _variants(rows: Sequence[ReleaseResult]) -> Iterator[str]:
    if any(row.steps for row in rows):
        yield from ("", "## How each step is done", "", "Chosen by the shape of the code, never by a version.", "")
        yield from _table(["step", "variant", "outcome", "releases"], variants_of(rows))


def _tests(report: Report) -> Iterator[str]:
    if any(item.shown or item.refused for item in report.capabilities):
        yield from ("", "## Which tests show it", "")
        yield from _table(
            ["", "", "test", "releases"], (row for item in report.capabilities for row in _tests_of(item, report))
        )


def _tests_of(item: Capability, report: Report) -> Iterator[list[str]]:
    among = [row.version for row in report.releases]
    for word, record in (("works", item.shown), ("refused", item.refused)):
        for test in sorted({test for tests in record.values() for test in tests}):
            versions = [version for version, tests in record.items() if test in tests]
            yield [item.title, word, f"`{test}`", spans(versions, among)]


def _table(
    columns: Sequence[str], rows: Iterator[Sequence[str]] | Iterator[tuple[str, str, str, str]]
) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(map(_escaped, row))} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<").replace("\n", " ")
