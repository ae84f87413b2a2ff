from __future__ import annotations

from pathlib import Path

import click

from ..model import Report
from ..operations.session import Session
from . import completing
from .options import outputs
from .outputs import output
from .run import run
from .teaching import examples


@click.command(
    "matrix",
    epilog=examples(
        ("a range of releases, for a CI system", "ddtree-patch matrix 0.5.11 … 0.5.23 --junit matrix.xml"),
        ("how each step is done on two of them", "ddtree-patch -v matrix 0.5.18 0.5.20"),
        ("a patchset of your own, on all of them", "ddtree-patch --patchset ./mine matrix"),
    ),
)
@click.argument("versions", metavar="[VERSION]...", nargs=-1, shell_complete=completing.releases)
@click.option(
    "--wheels",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where wheels are, and are kept when they are fetched [ddtree-patch/wheels in the user's cache].",
)
@click.option(
    "--capabilities",
    "record",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A column for each capability of this record, which a test run wrote.",
)
@outputs
@output("markdown", "Write the rows as a page.")
@output("survival", "Write by which variant each step found its place.")
@click.pass_context
def command(
    ctx: click.Context,
    versions: tuple[str, ...],
    wheels: Path | None,
    record: Path | None,
) -> None:
    """Plan and statically check many releases, from their wheels: nothing is installed, unpacked or written there.

    VERSION is a release, or a range of those that have a snapshot: 0.5.11 … 0.5.23, 0.5.11...0.5.23 or
    0.5.11 - 0.5.23. Without any, every release that has a snapshot. Wheels that are not there are fetched by pip. The
    exit code is the highest of a row's: 0, 4 (conflict), 5 (a static check fails) or 6 (refused, or no wheel).
    """

    def work(session: Session) -> Report:
        from ..operations.capabilities import load_capabilities
        from ..operations.surveying import survey
        from ..wheels import cache_folder

        capabilities = load_capabilities(record) if record else ()
        return survey(session, versions, wheels or cache_folder(), capabilities)

    run(ctx, "matrix", work)
