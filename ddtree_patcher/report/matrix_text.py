"""The table of ``matrix`` for people: a row a release, and with ``-v`` how each step is done where."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ..model import ReleaseVerdict, Report
from .releases import checks_of, spans, steps_of, variants_of, word_of
from .tables import listing, table

_STYLES = {ReleaseVerdict.APPLIES: "green", ReleaseVerdict.NOTHING_TO_DO: "green"}
_WORD = 9  # columns of a capability's heading and word, beside which a table still reads well


def draw(report: Report, console: Console, *, verbose: bool) -> None:
    """The rows; what tests showed stands beside them where there is room, else in a table of its own below."""
    beside = console.width >= 80 + _WORD * len(report.capabilities)
    drawn = table("release", "verdict", "steps", "static checks")
    for column in drawn.columns[:2]:
        column.no_wrap, column.overflow = True, "ellipsis"
    for item in report.capabilities if beside else ():
        drawn.add_column(Text(item.title), overflow="fold")
    for row in report.releases:
        verdict = Text(str(row.verdict), style=_STYLES.get(row.verdict, "bold red"))
        words = (word_of(item, row.version) for item in report.capabilities if beside)
        drawn.add_row(row.version, verdict, steps_of(row) or "-", checks_of(row) or "-", *words)
    console.print(drawn)
    if not beside:
        _capabilities(report, console)
    if verbose:
        console.print()
        rows = [list(map(Text, line)) for line in variants_of(report.releases)]
        listing(console, ("step", "variant", "outcome", "releases"), rows)


def _capabilities(report: Report, console: Console) -> None:
    """A row for each capability: what tests showed of it, and on which releases."""
    versions = [row.version for row in report.releases]
    rows = []
    for item in report.capabilities:
        found: dict[str, list[str]] = {}
        for version in versions:
            found.setdefault(word_of(item, version), []).append(version)
        rows.append([Text(item.title), Text("; ".join(f"{word} {spans(found[word], versions)}" for word in found))])
    console.print()
    listing(console, ("capability", "shown by tests"), rows)
