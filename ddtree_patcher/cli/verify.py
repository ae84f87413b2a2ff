from __future__ import annotations

from typing import BinaryIO

import click

from ..model import Report, Tier
from ..operations.session import Session
from .options import TIERS, tier
from .run import run


@click.command("verify", epilog="Example: ddtree-patch verify --require smoke --junit ddtree.xml")
@click.option("--tier", "upto", type=TIERS, default="smoke", show_default=True, help="How far to verify.")
@click.option("--require", "required", type=TIERS, help="Fail unless this tier (and those before it) ran and passed.")
@click.option("--junit", type=click.File("wb", lazy=True), metavar="FILE", help="Write the checks as JUnit XML.")
@click.pass_context
def command(ctx: click.Context, upto: str, required: str | None, junit: BinaryIO | None) -> None:
    """Check that what was applied is there and works. Writes nothing into the installation."""

    def work(session: Session) -> Report:
        from ..operations.verifying import verify

        report = verify(session, Tier(upto), tier(required))
        if junit is not None:
            from ..report import as_junit

            junit.write(as_junit.render(report))
        return report

    run(ctx, "verify", work)
