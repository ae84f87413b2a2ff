"""A report for people: what there is, what became of each step, what to do about it, and one closing line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..model import Cell, CheckOutcome, CheckResult, ExitCode, FileState, Report, Severity, StepResult
from . import diagnostic_text, diff_text, matrix_text, patch_text
from .tables import folded, listing, say, styled, table

_ROOMY = 110  # columns from which digests do not crowd paths


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
    if not quiet or report.diagnostics:
        console.print()
    say(console, _closing(report, console.width))


def _installation(report: Report, console: Console) -> None:
    facts = report.installation
    if facts:
        kind = f"{facts['kind']}{', by ' + str(facts['installer']) if facts['installer'] else ''}"
        title = f"{facts['distribution']} {facts['version'] or '(version unknown)'}"
        console.print(Text.assemble((title, "bold"), f" ({kind}) at {facts['root']}"), soft_wrap=True)
        checker = f"checked by {facts['python']} (Python {facts['python_version']})"
        console.print(Text(checker, "dim"), soft_wrap=True)


def _steps(steps: tuple[StepResult, ...], console: Console) -> None:
    if not steps:
        return
    columns, said = ["step", "outcome", "variant"], any(step.summary for step in steps)
    rows = [[Text(step.id), styled(str(step.outcome)), Text(step.variant), Text(step.summary)] for step in steps]
    console.print()
    listing(console, [*columns, "what it does" if said else ""], rows)


def _files(files: Sequence[FileState], console: Console, *, verbose: bool) -> None:
    """A line a file; digests where there is room for them, whole ones below each with ``-v``."""
    if not files:
        return
    digests = console.width >= _ROOMY and not verbose
    state_width = max(len("state"), *(len(item.status) for item in files))
    drawn = table("state", "file", *(("pristine", "desired", "on disk") if digests else ()))
    for item in files:
        # An added file that is gone after a revert is missing, and as it should be.
        state = styled(str(item.status)) if item.desired_sha256 or not item.added else Text(str(item.status))
        path = item.path + (" (added)" if item.added else "")
        known = (item.pristine_sha256, item.desired_sha256, item.current_sha256)
        place = Text(path if digests else folded(path, console.width - state_width - 2))
        if verbose:
            for name, value in zip(("pristine", "desired", "on disk"), known, strict=True):
                place.append(f"\n{name:<8} {value or '-'}", "dim")
        drawn.add_row(state, place, *(value[:12] or "-" for value in known if digests))
    console.print()
    console.print(drawn)


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
        for measured in _tables(mine):
            console.print()
            console.print(measured)


def _tables(checks: Sequence[CheckResult]) -> Iterator[Table]:
    """What a tier measured: rows with the same columns, one after the other, make one table."""
    rows = (row for check in checks for row in check.rows)
    for columns, group in groupby(rows, key=tuple):
        mine = list(group)
        drawn = table(*columns)
        for column, name in zip(drawn.columns, columns, strict=True):
            column.justify = "right" if any(_is_number(row[name]) for row in mine) else "left"
        for row in mine:
            drawn.add_row(*map(_cell, row.values()))
        yield drawn


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
        console.print()
        patch_text.draw(str(text), console)
    if snapshots := extra.get("snapshots"):
        assert isinstance(snapshots, list)
        drawn = table(*snapshots[0])
        for row in snapshots:
            drawn.add_row(*(str(value) for value in row.values()))
        console.print(drawn)


def _closing(report: Report, width: int) -> Text:
    """How it ended, and how much there was of what, in one line; without the digest where it would not be one."""
    good = report.exit_code is ExitCode.OK
    line = Text.assemble((f"{report.command}: ", "bold"), (report.outcome, "bold green" if good else "bold red"))
    patchset = f"  {report.patchset.id} {report.patchset.version}" if report.patchset.id else ""
    digest = f" ({report.patchset.digest[:12]})" if report.patchset.id else ""
    counts = f"  {words}" if (words := ", ".join(_counts(report))) else ""
    code = "" if good else f"  exit {int(report.exit_code)}"
    if len(line.plain) + len(patchset + digest + counts + code) > width:
        digest = ""
    return line.append(patchset + digest, "dim").append(counts).append(code, "dim")


def _counts(report: Report) -> Iterator[str]:
    """What was done, told by its most telling numbers."""
    words = [*(step.outcome for step in report.steps), *(row.verdict for row in report.releases)]
    yield from (f"{count} {word}" for word, count in Counter(map(str, words)).items())
    if report.releases:  # each has checks and problems of its own
        return
    outcomes = Counter(str(check.outcome) for check in report.checks)
    yield from (f"{count} {'checks' if count > 1 else 'check'} {word}" for word, count in outcomes.items())
    if report.files and not report.steps:
        yield f"{len(report.files)} files"
    if isinstance(snapshots := report.extra.get("snapshots"), list):
        yield f"{len(snapshots)} snapshots"
    severities = Counter(str(item.severity) for item in report.diagnostics if item.severity is not Severity.NOTE)
    yield from (f"{count} {word}{'s' if count > 1 else ''}" for word, count in severities.items())
