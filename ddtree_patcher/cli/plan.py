from __future__ import annotations

from typing import BinaryIO

import click

from ..model import Report
from ..operations.session import Session
from .options import outputs, selection
from .run import run
from .teaching import examples


@click.command(
    "plan",
    epilog=examples(
        ("read what would change, in colours", "FORCE_COLOR=1 ddtree-patch plan --diff | less -R"),
        ("take it to another machine", "ddtree-patch plan --out plan.json"),
        ("fail a job while anything is pending", "ddtree-patch plan --check"),
        ("a patch file, for a review", "ddtree-patch plan --diff > ddtree.patch"),
    ),
)
@click.option("--out", type=click.File("wb", lazy=True), metavar="FILE", help="Save the plan for a later `apply FILE`.")
@click.option("--diff", "with_diff", is_flag=True, help="Show the unified diff of every file.")
@click.option("--check", is_flag=True, help="Exit with 3 when anything is pending.")
@selection
@outputs
@click.pass_context
def command(
    ctx: click.Context,
    out: BinaryIO | None,
    with_diff: bool,
    check: bool,
    steps: tuple[str, ...],
    through: str,
    allow_drift: bool,
) -> None:
    """Show what apply would do: an outcome for every step, the state of every file. Writes nothing."""

    def work(session: Session) -> Report:
        from ..operations.planning import Selection, plan, saved

        chosen = Selection(steps, through, allow_drift)
        session.refuse_unsafe()
        report, prepared = plan(session, chosen, check=check, with_diff=with_diff)
        if out is not None and prepared.applicable:
            out.write(saved(session, prepared, chosen))
        return report

    run(ctx, "plan", work)
