from __future__ import annotations

import click

from ..model import Report
from ..operations.session import Session
from . import completing
from .options import outputs
from .run import run
from .teaching import examples


@click.command(
    "diff",
    epilog=examples(
        ("what an upgrade from 0.5.18 changed for each step", "ddtree-patch diff --snapshot 0.5.18"),
        ("fail a job when anything that is watched differs", "ddtree-patch diff --exit-code"),
    ),
)
@click.option(
    "--snapshot",
    "wanted",
    metavar="VERSION|PATH|auto",
    default="auto",
    show_default=True,
    shell_complete=completing.snapshots_or_auto,
    help="auto: the installed version's, else the nearest by content.",
)
@click.option("--text", is_flag=True, help="A unified diff too, where a full-text snapshot was captured.")
@click.option("--exit-code", is_flag=True, help="Exit with 3 when anything differs.")
@outputs
@click.pass_context
def command(ctx: click.Context, wanted: str, text: bool, exit_code: bool) -> None:
    """Compare the installation's pristine files with a snapshot, by symbol, and say what that means for each step."""

    def work(session: Session) -> Report:
        from ..operations.diffing import diff

        return diff(session, wanted, text=text, exit_code=exit_code)

    run(ctx, "diff", work)
