"""A report for people: what there is, what became of each step, what to do about it, and one closing line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Literal

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..model import Cell, CheckOutcome, CheckResult, ExitCode, FileState, Report, Severity, StepResult
from . import diagnostic_text, diff_text, matrix_text

_GOOD = {"applied", "already", "upstreamed", "not_needed", "passed", "pristine", "patched", "clean", "ok"}
_ROOMY = 110  # columns from which digests do not fold paths
_WAITING = {"pending", "not_run", "outdated", "changes", "warning", "wiped", "busy"}


def render(report: Report, console: Console, *, verbose: bool = False, quiet: bool = False) -> None:
    """Draw the whole report; ``quiet`` leaves its problems and the closing line."""
    if not quiet:
        if report.releases:
            matrix_text.draw(report, console, verbose=verbose)
        _installation(report, console)
        _extra(report, console, verbose=verbose)
        if "meaning" not in report.extra:  # said there, with what changed
            _steps(report.steps, console)
        _files(report.files, console, verbose=verbose)
        if not report.releases:  # their table has it
            _checks(report.checks, console, verbose=verbose)
    for item in report.diagnostics:
        if not quiet or item.severity is Severity.ERROR:
            diagnostic_text.draw(item, console)
    console.print(_closing(report), highlight=False, soft_wrap=True)


def styled(word: str) -> Text:
    """A status word in the colour of what it means."""
    style = "green" if word in _GOOD else "yellow" if word in _WAITING else "bold red"
    return Text(word, style=style)


def _installation(report: Report, console: Console) -> None:
    facts = report.installation
    if facts:
        kind = f"{facts['kind']}{', by ' + str(facts['installer']) if facts['installer'] else ''}"
        title = f"{facts['distribution']} {facts['version'] or '(version unknown)'}"
        console.print(Text.assemble((title, "bold"), f" ({kind}) at {facts['root']}"), soft_wrap=True)
        console.print(f"checked by {facts['python']} (Python {facts['python_version']})", style="dim", soft_wrap=True)


def _steps(steps: tuple[StepResult, ...], console: Console) -> None:
    table = Table(box=None, pad_edge=False, header_style="dim")
    summaries = any(step.summary for step in steps)
    for name in ("step", "outcome", "variant", *(["what it does"] if summaries else [])):
        table.add_column(name, overflow="fold")
    for step in steps:
        row = [escape(step.summary)] if summaries else []
        table.add_row(step.id, styled(str(step.outcome)), step.variant, *row)
    if table.row_count:
        console.print()
        console.print(table)


def _files(files: Iterable[FileState], console: Console, *, verbose: bool) -> None:
    """A line a file; digests where there is room for them, whole ones with ``-v``."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("state", no_wrap=True)
    table.add_column("file", overflow="fold")
    length = 64 if verbose else 12 if console.width >= _ROOMY else 0
    for name in ("pristine", "desired", "on disk") if length else ():
        table.add_column(name, overflow="fold")
    for item in files:
        digests = (item.pristine_sha256, item.desired_sha256, item.current_sha256) if length else ()
        added = " (added)" if item.added else ""
        # An added file that is gone after a revert is missing, and as it should be.
        state = styled(str(item.status)) if item.desired_sha256 or not item.added else Text(str(item.status))
        table.add_row(state, escape(item.path) + added, *(value[:length] or "-" for value in digests))
    if table.row_count:
        console.print()
        console.print(table)


def _checks(checks: tuple[CheckResult, ...], console: Console, *, verbose: bool) -> None:
    """A line a tier; then what did not pass: failures one by one, what did not run by its reason."""
    if checks:
        console.print()
    for tier in dict.fromkeys(item.tier for item in checks):
        mine = [item for item in checks if item.tier is tier]
        counts = Counter(item.outcome for item in mine)
        line = Text(f"{tier:<7}")
        for outcome in CheckOutcome:
            if counts[outcome]:
                line.append(f" {counts[outcome]} ").append_text(styled(str(outcome)))
        line.append(f"  {sum(item.seconds for item in mine):.1f} s", style="dim")
        console.print(line)
        if not verbose:
            for reason in dict.fromkeys(item.detail for item in mine if item.outcome is CheckOutcome.NOT_RUN):
                console.print(Padding(f"not run: {reason}", (0, 0, 0, 2)), markup=False, highlight=False)
        for item in mine:
            if verbose or item.outcome is CheckOutcome.FAILED:
                shown = item.detail if verbose else "".join(item.detail.splitlines()[:1])  # a diagnostic has the rest
                detail = f": {shown}" if shown else ""
                console.print(Padding(styled(str(item.outcome)).append(f" {item.id}{detail}", "default"), (0, 0, 0, 2)))
        for table in _tables(mine):
            console.print()
            console.print(table)


def _tables(checks: Sequence[CheckResult]) -> Iterator[Table]:
    """What a tier measured: rows with the same columns, one after the other, make one table."""
    rows = (row for check in checks for row in check.rows)
    for columns, group in groupby(rows, key=tuple):
        mine = list(group)
        table = Table(box=None, pad_edge=False, header_style="dim")
        for name in columns:
            justify: Literal["left", "right"] = "right" if any(_is_number(row[name]) for row in mine) else "left"
            table.add_column(escape(name), justify=justify, overflow="fold")
        for row in mine:
            table.add_row(*map(_cell, row.values()))
        yield table


def _cell(value: Cell) -> Text:
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    if isinstance(value, float):
        return Text(f"{value:.2f}")
    return Text("-" if value is None else str(value))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _extra(report: Report, console: Console, *, verbose: bool) -> None:
    extra = report.extra
    if "meaning" in extra:
        diff_text.draw(report, console, verbose=verbose)
    if "recorded_files" in extra:
        console.print(f"state folder: {extra['state_dir']}", soft_wrap=True)
        console.print(f"{extra['recorded_files']} files recorded, {extra['foreign_files']} of them differ from RECORD")
    if text := extra.get("diff") or extra.get("text"):
        _colour_diff(str(text), console)
    if snapshots := extra.get("snapshots"):
        assert isinstance(snapshots, list)
        table = Table(box=None, pad_edge=False, header_style="dim")
        for name in snapshots[0]:
            table.add_column(name)
        for row in snapshots:
            table.add_row(*(str(value) for value in row.values()))
        console.print(table)


def _colour_diff(text: str, console: Console) -> None:
    console.print()
    for line in text.splitlines():
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        console.print(Text(line, style="bold" if line.startswith(("+++", "---")) else style), soft_wrap=True)


def _closing(report: Report) -> Text:
    good = report.exit_code is ExitCode.OK
    line = Text("\n" if report.steps or report.releases or report.diagnostics else "")
    line.append(f"{report.command}: ", "bold").append(report.outcome, "bold green" if good else "bold red")
    if report.patchset.id:
        line.append(f"  {report.patchset.id} {report.patchset.version} ({report.patchset.digest[:12]})", "dim")
    if words := [*(step.outcome for step in report.steps), *(row.verdict for row in report.releases)]:
        counts = Counter(map(str, words))
        line.append("  " + ", ".join(f"{count} {word}" for word, count in counts.items()))
    if not good:
        line.append(f"  exit {int(report.exit_code)}", "dim")
    return line
