from __future__ import annotations

from pathlib import Path

import click

from ..model import Report
from ..operations.session import Session
from .options import outputs
from .run import run
from .teaching import examples


@click.command(
    "revert",
    epilog=examples(
        ("every byte back", "ddtree-patch --python .venv/bin/python revert"),
        ("over what somebody edited since", "ddtree-patch revert --discard-edits"),
        ("without the state folder", "ddtree-patch revert --from-wheel sglang.whl"),
    ),
)
@click.option(
    "--discard-edits",
    is_flag=True,
    help="Put pristine bytes back even over files edited since apply; "
    "with --from-wheel, over every file of the package that differs from RECORD.",
)
@click.option(
    "--from-wheel",
    "wheel",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Take pristine bytes from this wheel, where the state folder is lost. RECORD must have its digests.",
)
@outputs
@click.pass_context
def command(ctx: click.Context, discard_edits: bool, wheel: Path | None) -> None:
    """Put every byte, mode, time and RECORD row back, and remove what was added."""

    def work(session: Session) -> Report:
        if wheel is not None:
            from ..operations.restoring import revert_from_wheel

            return revert_from_wheel(session, wheel, discard_edits=discard_edits)
        from ..operations.reverting import revert

        return revert(session, discard_edits=discard_edits)

    run(ctx, "revert", work)
