"""What the shell may offer for an argument: names of steps, releases and patchsets, without running or loading any."""

from __future__ import annotations

import re
from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem

from .. import patchset as patchsets
from .. import resources
from ..errors import UsageError

Items = list[CompletionItem]


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    return [CompletionItem(incomplete, type="file")]


def folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    return [CompletionItem(incomplete, type="dir")]


def steps(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """The steps of the patchset that the command line names."""
    try:
        folder = patchsets.locate(ctx.find_root().params.get("patchset") or patchsets.DEFAULT)
    except UsageError:
        return []
    return _items(patchsets.step_names(folder), incomplete)


def releases(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """The versions that have a snapshot, oldest first."""
    names = {file.stem.rpartition("-")[2] for file in resources.folder("snapshots").glob("*.json")}
    return _items(sorted(names, key=_order), incomplete)


def snapshots(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    return [*files(ctx, param, incomplete), *releases(ctx, param, incomplete)]


def snapshots_or_auto(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    return [*snapshots(ctx, param, incomplete), *_items(["auto"], incomplete)]


def patchset(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    return [*folders(ctx, param, incomplete), *_items(patchsets.known(), incomplete)]


def _items(names: Iterable[str], incomplete: str) -> Items:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _order(version: str) -> list[tuple[int, str]]:
    """Numbers count as numbers: 0.5.9 comes before 0.5.11."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"[.]|(?<=\d)(?=\D)", version)]
