"""The table of ``matrix`` for people: a row a release, and with ``-v`` how each step is done where."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ..model import ReleaseVerdict, Report
from .releases import checks_of, steps_of, variants_of, word_of

_STYLES = {ReleaseVerdict.APPLIES: "green", ReleaseVerdict.NOTHING_TO_DO: "green"}


def draw(report: Report, console: Console, *, verbose: bool) -> None:
    table = _table("release", "verdict", "steps", "static checks", *(item.title for item in report.capabilities))
    for row in report.releases:
        words = (word_of(item, row.version) for item in report.capabilities)
        verdict = Text(str(row.verdict), style=_STYLES.get(row.verdict, "bold red"))
        table.add_row(row.version, verdict, steps_of(row) or "-", checks_of(row) or "-", *words)
    console.print(table)
    if verbose:
        variants = _table("step", "variant", "outcome", "releases")
        for line in variants_of(report.releases):
            variants.add_row(*map(escape, line))
        console.print()
        console.print(variants)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in columns:
        table.add_column(escape(name), overflow="fold")
    return table
