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

if TYPE_CHECKING:
    from rich.console import Console

Work = Callable[[Session], Report]


def run(ctx: click.Context, command: str, work: Work) -> NoReturn:
    """Do a command's work and end the process with its exit code; errors become reports, not tracebacks."""
    shared: dict[str, Any] = ctx.obj
    with _progress(shared) as say, _no_collector():
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
            )
        )
        try:
            report = work(session)
        except PatchError as error:
            report = session.failure(command, error)
        except KeyboardInterrupt:
            report = _interrupted(command)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except OSError as error:
            named = error.filename is not None
            report = session.failure(command, _refused(error)) if named else _unexpected(command, error)
        except Exception as error:
            report = _unexpected(command, error)
    draw(report, shared)
    sys.exit(int(report.exit_code))


def draw(report: Report, shared: dict[str, Any]) -> None:
    """JSON alone on standard output, or text; JSON into the file of ``--report`` too."""
    if shared["form"] == "json" or shared["report"] is not None:
        from ..report import as_json

        rendered = as_json.render(report)
        if shared["report"] is not None:
            shared["report"].write(f"{rendered}\n".encode())
        if shared["form"] == "json":
            click.echo(rendered)
            return
    from ..report import as_text

    as_text.render(report, console(), verbose=shared["verbose"], quiet=shared["quiet"])


def console() -> Console:
    """Standard output. With NO_COLOR not one escape code is written, where rich would still write bold and dim."""
    from rich.console import Console

    return Console(color_system=None) if os.environ.get("NO_COLOR") else Console()


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


@contextmanager
def _progress(shared: dict[str, Any]) -> Iterator[Callable[[str], None]]:
    """Says on standard error what takes time: a moving line on a terminal, plain lines elsewhere, none with ``-q``."""
    if shared["quiet"]:
        yield lambda message: None
    elif sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        from rich.console import Console
        from rich.text import Text

        with Console(stderr=True).status("") as status:
            yield lambda message: status.update(Text(message))  # a program's words, no markup
    else:
        yield lambda message: click.echo(f"… {message}", err=True)


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
