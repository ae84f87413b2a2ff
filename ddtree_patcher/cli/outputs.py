"""What a command writes beside its report: files for CI systems, annotations and a summary for GitHub, events."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from ..errors import PatchError
from ..model import Diagnostic, ExitCode, Report, Result, Severity
from ..output import Lines, append_output, obstacle, write_output

Function = TypeVar("Function", bound=Callable[..., Any])
_KEY = "ddtree_patch.outputs"  # in the click context: form -> path


def _json(report: Report) -> bytes:
    from ..report import as_json

    return f"{as_json.render(report)}\n".encode("utf-8", "backslashreplace")


def _junit(report: Report) -> bytes:
    from ..report import as_junit

    return as_junit.render(report)


def _sarif(report: Report) -> bytes:
    from .. import __version__, resources
    from ..report import as_sarif
    from ..report.statuses import statuses_in

    document = resources.folder("docs") / "statuses.md"
    return as_sarif.render(report, __version__, statuses_in(document.read_text("utf-8")))


def _code_quality(report: Report) -> bytes:
    from ..report import as_code_quality

    return as_code_quality.render(report)


def _markdown(report: Report) -> bytes:
    from ..report import as_markdown

    return as_markdown.render(report).encode("utf-8", "backslashreplace")


def _survival(report: Report) -> bytes:
    from ..survival import survived, to_bytes

    return to_bytes(survived(report.patchset.id, report.releases))


_RENDERERS: Mapping[str, Callable[[Report], bytes]] = {
    "junit": _junit,
    "sarif": _sarif,
    "code-quality": _code_quality,
    "markdown": _markdown,
    "survival": _survival,
    "report": _json,  # last: what was lost of the others is in it
}


def output(form: str, text: str) -> Callable[[Function], Function]:
    """The option ``--FORM FILE``. The file is written when the command has ended, however it ended."""

    def remember(ctx: click.Context, parameter: click.Parameter, value: str | None) -> None:
        if value is None or ctx.resilient_parsing:
            return
        if why := obstacle(Path(value)):
            raise click.BadParameter(f"{value} cannot be written: {why}", ctx, parameter)
        wanted = ctx.meta.setdefault(_KEY, {})
        if Path(value) in wanted.values():
            raise click.BadParameter(f"{value} is named twice", ctx, parameter)
        wanted[form] = Path(value)

    return click.option(f"--{form}", metavar="FILE", expose_value=False, callback=remember, help=text)


def is_wanted(ctx: click.Context, form: str) -> bool:
    return form in ctx.meta.get(_KEY, {})


def write_outputs(ctx: click.Context, report: Report, forms: Collection[str] = ()) -> Report:
    """The report, once every file that was asked for is written; what could not be written is in it.

    With ``forms``, those alone: a command line that is refused has no findings.
    """
    wanted: Mapping[str, Path] = ctx.meta.get(_KEY, {})
    for form, render in _RENDERERS.items():
        if form not in wanted or (forms and form not in forms):
            continue
        path = wanted[form]
        try:
            write_output(path, render(report))
        except (PatchError, OSError) as error:
            report = _without(report, str(error))
    return report


def _without(report: Report, summary: str) -> Report:
    """Whoever asked for a file must not take its absence for a success."""
    what = Diagnostic("output_lost", Severity.ERROR, summary, remedy="Name another file, or make room.")
    lost = replace(report, diagnostics=(*report.diagnostics, what))
    if report.exit_code is not ExitCode.OK:
        return lost
    return replace(lost, exit_code=ExitCode.USAGE, outcome=ExitCode.USAGE.symbol)


@dataclass
class Events:
    """The events of one run, in a file or nowhere."""

    lines: Lines | None
    begun: float

    def tell(self, event: Mapping[str, Any]) -> None:
        if self.lines is not None:
            from ..report import as_events

            self.lines.add(as_events.line(dict(event), time.monotonic() - self.begun))

    def say(self, message: str) -> None:
        if self.lines is not None:
            from ..report import as_events

            self.tell(as_events.progress(message))

    def result(self, item: Result) -> None:
        if self.lines is not None:
            from ..report import as_events

            self.tell(as_events.result(item))

    def finish(self, report: Report) -> Report:
        """The report, with a warning where events were lost."""
        if self.lines is None:
            return report
        from ..report import as_events

        self.tell(as_events.finished(report))
        if not self.lines.lost:
            return report
        summary = f"events are missing: {self.lines.lost}"
        what = Diagnostic("output_lost", Severity.WARNING, summary, remedy="Everything else was done.")
        return replace(report, diagnostics=(*report.diagnostics, what))


@contextmanager
def events(ctx: click.Context, command: str) -> Iterator[Events]:
    """Events to the file that ``--events`` names. It is opened before anything is done, or the command is refused."""
    wanted: str = ctx.obj["events"]
    if not wanted:
        yield Events(None, 0.0)
        return
    from .. import __version__
    from ..report import as_events

    try:
        lines = Lines(wanted)
    except PatchError as error:
        raise click.UsageError(error.summary, ctx) from error
    told = Events(lines, time.monotonic())
    try:
        told.tell(as_events.started(command, ctx.obj["patchset"], __version__))
        yield told
    finally:
        lines.close()


def on_github(shared: Mapping[str, Any]) -> bool:
    return os.environ.get("GITHUB_ACTIONS") == "true" and not shared["no_github"]


def harmless(message: str, shared: Mapping[str, Any]) -> str:
    """A line of progress. GitHub's runner takes what follows ``##[`` for a command, wherever in a line it stands."""
    return message.replace("##[", "## [") if on_github(shared) else message


@contextmanager
def no_commands(shared: Mapping[str, Any]) -> Iterator[None]:
    """A report for people quotes files and programs: nothing in it is a command for GitHub's runner."""
    if not on_github(shared):
        yield
        return
    import secrets

    token = secrets.token_hex(16)
    click.echo(f"::stop-commands::{token}")
    try:
        yield
    finally:
        click.echo(f"::{token}::")


def tell_github(report: Report, shared: Mapping[str, Any]) -> None:
    """Annotations (JSON has standard output to itself: they go to standard error then) and the step's summary."""
    if not on_github(shared):
        return
    from ..report import as_github

    for line in as_github.commands(report):
        click.echo(line, err=shared["form"] == "json")
    if path := os.environ.get("GITHUB_STEP_SUMMARY", ""):
        try:
            taken = os.stat(path).st_size if os.path.exists(path) else 0
            append_output(Path(path), as_github.summary(report, as_github.LIMIT - taken))
        except (PatchError, OSError) as error:
            click.echo(f"the step summary is missing: {error}", err=True)
