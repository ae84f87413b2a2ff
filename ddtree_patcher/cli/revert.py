from __future__ import annotations

import click

from ..model import Report
from ..operations.session import Session
from .run import run


@click.command("revert", epilog="Example: ddtree-patch --python .venv/bin/python revert")
@click.option("--discard-edits", is_flag=True, help="Put pristine bytes back even over files edited since apply.")
@click.pass_context
def command(ctx: click.Context, discard_edits: bool) -> None:
    """Put every byte, mode, time and RECORD row back, and remove what was added."""

    def work(session: Session) -> Report:
        from ..operations.reverting import revert

        return revert(session, discard_edits=discard_edits)

    run(ctx, "revert", work)
