from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from ..model import Report, Tier
from ..operations.session import Session
from .options import TIERS, outputs, tier
from .run import run
from .teaching import examples


@click.command(
    "verify",
    epilog=examples(
        ("seconds, needs nothing but the files", "ddtree-patch verify --tier static"),
        ("last in a CI job or an image build", "ddtree-patch verify --require smoke --junit ddtree.xml"),
        ("the proof, on your machine", "ddtree-patch --python .venv/bin/python verify --tier e2e"),
    ),
)
@click.option("--tier", "upto", type=TIERS, default="smoke", show_default=True, help="How far to verify.")
@click.option("--require", "required", type=TIERS, help="Fail unless this tier (and those before it) ran and passed.")
@click.option("--hybrid", is_flag=True, help="With e2e: run the checks of hybrid targets (recurrent layers) instead.")
@click.option(
    "--attestation",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Hold the tree against a statement that `status --attest` wrote, instead of running tiers.",
)
@outputs
@click.pass_context
def command(ctx: click.Context, upto: str, required: str | None, hybrid: bool, attestation: Path | None) -> None:
    """Check that what was applied is there and works. Writes nothing into the installation.

    Each tier includes those before it, and is not run when one of them failed:

    \b
    static  seconds, needs nothing: files are as applied,
            imports exist, contracts hold
    import  needs SGLang's dependencies: each touched
            module is imported
    smoke   the same: what the patchset asks of SGLang
            itself, without a model
    e2e     minutes: tiny random models on the real engine,
            on the GPU where there is one, else on the CPU
    """
    if hybrid and Tier.E2E not in (Tier(upto), tier(required)):
        raise click.UsageError("--hybrid chooses checks of the e2e tier: add --tier e2e or --require e2e")

    if attestation is not None and (required or ctx.get_parameter_source("upto") is not ParameterSource.DEFAULT):
        raise click.UsageError("--attestation runs no tier: run verify with --tier or --require beside it")

    def work(session: Session) -> Report:
        if attestation is not None:
            from ..operations.attested import hold

            return hold(session, attestation)
        from ..operations.verifying import verify

        return verify(session, Tier(upto), tier(required), ("--hybrid",) if hybrid else ())

    run(ctx, "verify", work)
