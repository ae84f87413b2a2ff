"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ..model import Tier
from . import completing

Function = TypeVar("Function", bound=Callable[..., Any])

TIERS = click.Choice([tier.value for tier in Tier])


def selection(function: Function) -> Function:
    """Which steps, and on what base."""
    for option in (
        click.option("--allow-drift", is_flag=True, help="Build on files that RECORD cannot prove, as they are."),
        click.option(
            "--through",
            metavar="STEP",
            default="",
            shell_complete=completing.steps,
            help="Only the steps up to and including this one.",
        ),
        click.option(
            "--step",
            "steps",
            metavar="STEP",
            multiple=True,
            shell_complete=completing.steps,
            help="Only this step (may be repeated).",
        ),
    ):
        function = option(function)
    return function


def tier(value: str | None) -> Tier | None:
    return Tier(value) if value and value != "none" else None
