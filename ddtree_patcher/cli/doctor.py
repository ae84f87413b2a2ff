from __future__ import annotations

import click

from ..model import Report
from ..operations.session import Session
from .options import outputs
from .run import run
from .teaching import examples


@click.command(
    "doctor",
    epilog=examples(
        ("an environment of its own", "ddtree-patch --python .venv/bin/python doctor"),
        ("a folder made by pip install --target", "ddtree-patch --root ./site doctor"),
    ),
)
@outputs
@click.pass_context
def command(ctx: click.Context) -> None:
    """Describe the installation and everything that would make patching it unsafe, each with a remedy."""

    def work(session: Session) -> Report:
        from ..operations.inspecting import doctor

        return doctor(session)

    run(ctx, "doctor", work)
