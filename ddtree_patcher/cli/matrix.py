from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import click

from ..model import Report
from ..operations.session import Session
from . import completing
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
@click.option("--junit", type=click.File("wb", lazy=True), metavar="FILE", help="Write the rows as JUnit XML.")
@click.option(
    "--survival",
    "survivors",
    type=click.File("wb", lazy=True),
    metavar="FILE",
    help="Write by which variant each step found its place.",
)
@click.option("--markdown", type=click.File("wb", lazy=True), metavar="FILE", help="Write the rows as a page.")
@click.pass_context
def command(
    ctx: click.Context,
    versions: tuple[str, ...],
    wheels: Path | None,
    record: Path | None,
    junit: BinaryIO | None,
    survivors: BinaryIO | None,
    markdown: BinaryIO | None,
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
        report = survey(session, versions, wheels or cache_folder(), capabilities)
        if junit is not None:
            from ..report import as_junit

            junit.write(as_junit.render(report))
        if markdown is not None:
            from ..report import as_markdown

            markdown.write(as_markdown.render(report).encode())
        if survivors is not None:
            from ..survival import survived, to_bytes

            survivors.write(to_bytes(survived(report.patchset.id, report.releases)))
        return report

    run(ctx, "matrix", work)
