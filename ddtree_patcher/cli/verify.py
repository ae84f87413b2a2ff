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
@click.option("--hybrid", is_flag=True, help="With e2e: run the checks of hybrid targets (recurrent layers) instead.")
@click.option("--junit", type=click.File("wb", lazy=True), metavar="FILE", help="Write the checks as JUnit XML.")
@click.pass_context
def command(ctx: click.Context, upto: str, required: str | None, hybrid: bool, junit: BinaryIO | None) -> None:
    """Check that what was applied is there and works. Writes nothing into the installation.

    Each tier includes those before it, and is not run when one of them failed:

    \b
    static  seconds, needs nothing: files are as applied, imports exist
            ddtree-patch verify --tier static
    import  needs SGLang's dependencies: each touched module is imported
            ddtree-patch verify --tier import
    smoke   the same: what the patchset asks of SGLang itself, without a model
            ddtree-patch verify --require smoke --junit ddtree.xml
    e2e     minutes: tiny random models on the real engine, on the GPU where
            there is one, else on the CPU; a table of runs
            ddtree-patch --python .venv/bin/python verify --tier e2e
            ddtree-patch --python .venv/bin/python verify --tier e2e --hybrid
    """
    if hybrid and Tier.E2E not in (Tier(upto), tier(required)):
        raise click.UsageError("--hybrid chooses checks of the e2e tier: add --tier e2e or --require e2e")

    def work(session: Session) -> Report:
        from ..operations.verifying import verify

        report = verify(session, Tier(upto), tier(required), ("--hybrid",) if hybrid else ())
        if junit is not None:
            from ..report import as_junit

            junit.write(as_junit.render(report))
        return report

    run(ctx, "verify", work)
