from __future__ import annotations

import click

from ..model import Report
from ..operations.session import Session
from .options import outputs
from .run import run


@click.command("status", epilog="Example: ddtree-patch status --check || exit 1")
@click.option("--check", is_flag=True, help="Exit with 3 unless the patch is applied and current.")
@outputs
@click.pass_context
def command(ctx: click.Context, check: bool) -> None:
    """Say what is there now: clean, applied, outdated, wiped, drifted, interrupted or busy. Needs no write access."""

    def work(session: Session) -> Report:
        from ..operations.inspecting import status

        return status(session, check=check)

    run(ctx, "status", work)
