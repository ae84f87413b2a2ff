from __future__ import annotations

from pathlib import Path

import click

from ..model import Report
from ..operations.session import Session
from .options import outputs
from .run import run
from .teaching import examples


@click.command(
    "status",
    epilog=examples(
        ("before a server starts: patched and current?", "ddtree-patch status --check"),
        ("for a program", "ddtree-patch --format json status"),
    ),
)
@click.option("--check", is_flag=True, help="Exit with 3 unless the patch is applied and current.")
@click.option(
    "--attest",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Verify the static tier, and write an in-toto statement of the patched tree.",
)
@outputs
@click.pass_context
def command(ctx: click.Context, check: bool, attest: Path | None) -> None:
    """Say what is there now: clean, applied, outdated, wiped, drifted, interrupted or busy. Needs no write access."""

    def work(session: Session) -> Report:
        if attest is not None:
            from ..operations import attesting  # late: it imports what reads code, which status alone never does

            return attesting.attest(session, attest, check=check)
        from ..operations.inspecting import status

        return status(session, check=check)

    run(ctx, "status", work)
