"""The command group: the options that every command shares, and commands that are imported when they are named."""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from .. import __version__
from ..model import Diagnostic, ExitCode, Report, Severity
from . import completing
from .outputs import is_wanted, output, write_outputs
from .teaching import Group, examples

_COMMANDS = {
    "apply": "Apply the patchset, read every byte back, verify; roll back where a check fails.",
    "completion": "Print the completion script of a shell.",
    "diff": "Compare the installation with a snapshot, by symbol.",
    "doctor": "Describe the installation and what would make patching it unsafe.",
    "matrix": "Plan and check many releases, from their wheels, as a table.",
    "plan": "Show what apply would do.",
    "revert": "Put every byte, mode and added file back.",
    "snapshot": "Make, list and show snapshots of releases.",
    "status": "Say what is there now, from digests alone.",
    "verify": "Check that what was applied is there and works.",
}


class _Lazy(Group):
    """Imports a command's module when it is used, so that ``status`` never loads libcst."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f".{cmd_name}", __package__)
        command = module.command
        assert isinstance(command, click.Command)
        return command

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        for stream in (sys.stdout, sys.stderr):  # a name that is not UTF-8 must not end in a traceback
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        with _refusals("command-line", as_json="--format=json" in args or "--format json" in " ".join(args)):
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _refusals(ctx, as_json=ctx.params.get("form") == "json"):
            return self._invoke(ctx)

    def _invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            from difflib import get_close_matches  # late: only mistakes need it

            shared = {name for parameter in self.params for name in parameter.opts}
            near = get_close_matches(error.option_name, shared, n=1, cutoff=0.8)
            if error.ctx is None or not near or near[0] == "--help":
                raise
            known = near[0] == error.option_name
            told = "" if known else f"No such option {error.option_name!r}. Did you mean {near[0]!r}? "
            example = f"ddtree-patch {near[0]} … {error.ctx.info_name}"
            raise click.UsageError(f"{told}{near[0]} goes before the command: {example}", error.ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))


@contextmanager
def _refusals(command: str | click.Context, *, as_json: bool) -> Iterator[None]:
    """What click refuses ends with 2, and is one JSON object for those who asked for JSON."""
    try:
        yield
    except click.ClickException as error:
        # click ends with 1 for a file that cannot be opened
        refused = click.UsageError(error.format_message()) if isinstance(error, click.FileError) else error
        wanted = not isinstance(command, str) and is_wanted(command, "report")
        if not as_json and not wanted:
            raise refused from None
        name = command if isinstance(command, str) else command.invoked_subcommand or "command-line"
        context = getattr(error, "ctx", None)
        remedy = f"See `{context.command_path if context else 'ddtree-patch'} --help`."
        what = Diagnostic("usage", Severity.ERROR, error.format_message(), remedy=remedy)
        report = Report(name, ExitCode.USAGE, ExitCode.USAGE.symbol, diagnostics=(what,))
        if not isinstance(command, str):
            report = write_outputs(command, report, ("report",))
        if not as_json:
            raise refused from None
        from ..report import as_json as renderer

        click.echo(renderer.render(report))
        sys.exit(int(ExitCode.USAGE))


@click.group(
    cls=_Lazy,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples(
        ("the SGLang of another environment", "ddtree-patch --python .venv/bin/python plan --diff"),
        ("an unpacked wheel, for a program", "ddtree-patch --root ./site --format json plan"),
    )
    + "\n\nExit codes: 0 ok, 1 error, 2 usage, 3 changes, 4 conflict, 5 verification_failed, "
    "6 environment_refused, 7 locked, 8 interrupted. Statuses and remedies: docs/statuses.md.",
)
@click.option(
    "--python",
    metavar="PATH",
    default="",
    shell_complete=completing.files,
    help="The interpreter whose SGLang is meant [this one].",
)
@click.option(
    "--root",
    metavar="DIR",
    default="",
    shell_complete=completing.folders,
    help="The sglang folder, or the folder that holds it.",
)
@click.option(
    "--patchset",
    metavar="ID|DIR",
    shell_complete=completing.patchset,
    default="ddtree",
    show_default=True,
    help="A bundled patchset, an installed one (entry point) or a folder. Its Python code is run.",
)
@click.option(
    "--state-dir",
    metavar="DIR",
    default="",
    envvar="DDTREE_PATCH_STATE_DIR",
    shell_complete=completing.folders,
    show_envvar=True,
    help="Where pristine bytes and state are kept [.ddtree-patch beside the package].",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@output("report", "Write the JSON report there, whatever is printed.")
@click.option(
    "--lock-timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=0.0,
    help="Wait this long for another run [0].",
)
@click.option(
    "--events",
    metavar="FILE",
    default="",
    help="Write what happens to FILE (- is standard error) as it happens, a JSON object a line.",
)
@click.option(
    "--no-github",
    is_flag=True,
    envvar="DDTREE_PATCH_NO_GITHUB",
    show_envvar=True,
    help="Write no annotations and no step summary, also where GITHUB_ACTIONS is set.",
)
@click.option("--allow-editable", is_flag=True, help="Patch an editable or VCS installation: somebody's source tree.")
@click.option("--break-system-packages", is_flag=True, help="Patch an externally managed interpreter (PEP 668).")
@click.option(
    "--allow-shared",
    is_flag=True,
    help="Patch a package that lies outside of its environment, behind a link: all who share it get the patch.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print problems and the closing line only.")
@click.option("-v", "--verbose", is_flag=True, help="Print every check and whole digests.")
@click.version_option(__version__, prog_name="ddtree-patch")
@click.pass_context
def main(ctx: click.Context, /, **options: object) -> None:
    """Rewrite an installed SGLang so that it gains DDTREE speculative decoding, prove it, and put every byte back.

    \b
    doctor                  is it safe to patch what is here?
    plan --diff             what would change?
    apply                   change it, prove it; or nothing
    verify --require smoke  last in a CI job or an image build
    status --check          applied and current? from digests
    revert                  every byte back
    """
    ctx.obj = options
