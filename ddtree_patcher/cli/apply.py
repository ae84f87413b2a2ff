from __future__ import annotations

import click

from ..model import Report
from ..operations.session import Session
from . import completing
from .options import TIERS, outputs, selection, tier
from .run import run
from .teaching import examples


@click.command(
    "apply",
    epilog=examples(
        ("in an image build: proved, or nothing", "ddtree-patch apply --require smoke"),
        ("a plan that was reviewed elsewhere", "ddtree-patch apply plan.json"),
        ("the first steps, without running SGLang", "ddtree-patch apply --through enum --verify static"),
    ),
)
@click.argument("plan", required=False, metavar="[PLAN]", shell_complete=completing.files)
@click.option(
    "--verify",
    "upto",
    type=click.Choice(["none", *TIERS.choices]),
    default="smoke",
    show_default=True,
    help="How far to verify. A tier that cannot run here is reported, and fails only when required.",
)
@click.option("--require", "required", type=TIERS, help="Fail unless this tier (and those before it) ran and passed.")
@selection
@outputs
@click.pass_context
def command(
    ctx: click.Context,
    plan: str | None,
    upto: str,
    required: str | None,
    steps: tuple[str, ...],
    through: str,
    allow_drift: bool,
) -> None:
    """Apply the patchset, or a saved PLAN of it.

    Every file is staged, replaced, read back and verified; where anything fails, every byte is put back.
    """

    def work(session: Session) -> Report:
        from ..operations.applying import Verification, apply
        from ..operations.planning import Selection, load_plan

        if plan and (steps or through or allow_drift):
            raise click.UsageError("a PLAN has its own steps: leave out --step, --through and --allow-drift.", ctx)
        loaded = load_plan(plan) if plan else None
        verification = Verification(tier(upto), tier(required))
        return apply(session, Selection(steps, through, allow_drift), verification, loaded)

    run(ctx, "apply", work)
