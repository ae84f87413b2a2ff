"""What every command does around its own work: read the shared options, catch errors, draw the report, exit."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ..errors import EnvironmentRefused, PatchError
from ..model import Diagnostic, ExitCode, Report, Severity
from ..operations.session import Options, Session
from .outputs import Events, events, harmless, no_commands, tell_github, write_outputs
from .progress import progress

if TYPE_CHECKING:
    from rich.console import Console

Work = Callable[[Session], Report]
_LOG = 120  # columns of a line in a log, where tables and texts are folded


def run(ctx: click.Context, command: str, work: Work) -> NoReturn:
    """Do a command's work and end the process with its exit code; errors become reports, not tracebacks."""
    shared: dict[str, Any] = ctx.obj
    alone = shared["events"] == "-"  # events have standard error to themselves
    with events(ctx, command) as told, progress("starting", quiet=shared["quiet"] or alone) as show:
        report = _report(ctx, command, work, told, show)
        report = told.finish(write_outputs(ctx, report))
    draw(report, shared)
    tell_github(report, shared)
    sys.exit(int(report.exit_code))


def _report(ctx: click.Context, command: str, work: Work, told: Events, show: Callable[[str], None]) -> Report:
    """What a command comes to, whatever becomes of it."""
    shared: dict[str, Any] = ctx.obj

    def say(message: str) -> None:
        told.say(message)
        show(harmless(message, shared))

    with _no_collector():
        session = Session(
            Options(
                python=shared["python"],
                root=shared["root"],
                patchset=shared["patchset"],
                state_dir=shared["state_dir"],
                lock_timeout=shared["lock_timeout"],
                allow_editable=shared["allow_editable"],
                break_system=shared["break_system_packages"],
                allow_shared=shared["allow_shared"],
                say=say,
                came_to=told.result,
            )
        )
        try:
            return work(session)
        except PatchError as error:
            return session.failure(command, error)
        except KeyboardInterrupt:
            return _interrupted(command)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except OSError as error:
            named = error.filename is not None
            return session.failure(command, _refused(error)) if named else _unexpected(command, error)
        except Exception as error:
            return _unexpected(command, error)


def draw(report: Report, shared: dict[str, Any]) -> None:
    """JSON alone on standard output, or text."""
    if shared["form"] == "json":
        from ..report import as_json

        click.echo(as_json.render(report))
        return
    from ..report import as_text

    with no_commands(shared):
        as_text.render(report, console(), verbose=shared["verbose"], quiet=shared["quiet"])


def console() -> Console:
    """Standard output. With NO_COLOR not one escape code is written, where rich would still write bold and dim."""
    from rich.console import Console

    drawn = Console(color_system=None) if os.environ.get("NO_COLOR") else Console()
    if not os.environ.get("COLUMNS") and not any(map(os.isatty, (0, 1, 2))):
        drawn.width = _LOG  # nothing here has a width: a log
    return drawn


@contextmanager
def _no_collector() -> Iterator[None]:
    """Half of the run time would go into looking for garbage among syntax trees that are in use until the end."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # the interpreter would look once more on its way out, for longer than all of the work takes
        if enabled:
            gc.enable()


def _interrupted(command: str) -> Report:
    summary, remedy = "stopped; nothing was left half done", "`ddtree-patch status` says what is there. Run it again."
    what = Diagnostic("interrupted", Severity.ERROR, summary, remedy=remedy)
    return Report(command, ExitCode.INTERRUPTED, ExitCode.INTERRUPTED.symbol, diagnostics=(what,))


def _refused(error: OSError) -> EnvironmentRefused:
    """A file that this user may not read, a folder where a file should be, a full disk …"""
    return EnvironmentRefused(
        f"{os.fsdecode(error.filename)}: {error.strerror}",
        remedy="Run as a user who may read and write there.",
    )


def _unexpected(command: str, error: Exception) -> Report:
    what = Diagnostic(
        "error",
        Severity.ERROR,
        f"unexpected {type(error).__name__}: {error}",
        detail=traceback.format_exc(),
        remedy="This is a fault of ddtree-patch: report it with the text above.",
    )
    return Report(command, ExitCode.ERROR, ExitCode.ERROR.symbol, diagnostics=(what,))
