"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ..model import Tier
from . import completing
from .outputs import output

Function = TypeVar("Function", bound=Callable[..., Any])


def outputs(function: Function) -> Function:
    """Files for CI systems, written when the command has ended, however it ended."""
    for form, text in (
        ("code-quality", "Write the findings as GitLab's code quality report."),
        ("sarif", "Write the findings as SARIF 2.1.0."),
        ("junit", "Write steps, checks and findings as JUnit XML."),
    ):
        function = output(form, text)(function)
    return function


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
