"""``snapshot capture|list|show``."""

from __future__ import annotations

from pathlib import Path

import click

from ..errors import UsageError
from ..model import ExitCode, Report
from ..operations.session import Session
from ..snapshot import Absent, Snapshot, bundled, load, to_bytes
from .run import run


@click.group("snapshot")
def command() -> None:
    """Make, list and show snapshots: a release's watched files as digests, names and signatures, without source."""


@command.command(
    "capture", epilog="Example: ddtree-patch snapshot capture sglang-0.5.13-*.whl --out snapshots/sglang-0.5.13.json"
)
@click.argument("wheel", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option("--out", required=True, type=click.Path(dir_okay=False), help="The snapshot file to write.")
@click.option("--also", metavar="ID|DIR", multiple=True, help="Watch what this patchset watches, too.")
@click.option("--text", is_flag=True, help="Keep the full text too, in a folder named like FILE (do not commit it).")
@click.pass_context
def capture(ctx: click.Context, wheel: str | None, out: str, also: tuple[str, ...], text: bool) -> None:
    """Capture a snapshot from a WHEEL, or from the installation when none is given."""

    def work(session: Session) -> Report:
        from ..operations.capturing import capture as take

        return take(session, wheel or "", Path(out), text=text, also=also)

    run(ctx, "snapshot", work)


@command.command("list", epilog="Example: ddtree-patch snapshot list")
@click.pass_context
def list_all(ctx: click.Context) -> None:
    """List the snapshots that come with the tool."""

    def work(session: Session) -> Report:
        rows = [_row(item) for item in bundled()]
        return Report("snapshot", ExitCode.OK, "ok", extra={"snapshots": rows})

    run(ctx, "snapshot", work)


@command.command("show", epilog="Example: ddtree-patch snapshot show 0.5.11 | less")
@click.argument("snapshot", metavar="VERSION|PATH")
@click.pass_context
def show(ctx: click.Context, snapshot: str) -> None:
    """Print one snapshot as it is stored."""
    try:
        click.echo(to_bytes(load(snapshot)), nl=False)
    except UsageError as error:
        caught = error

        def fail(session: Session) -> Report:
            raise caught

        run(ctx, "snapshot", fail)


def _row(snapshot: Snapshot) -> dict[str, object]:
    files = [item for item in snapshot.files.values() if not isinstance(item, Absent)]
    symbols = sum(len(item.symbols) for item in files)
    return {"distribution": snapshot.distribution, "version": snapshot.version, "files": len(files), "symbols": symbols}
