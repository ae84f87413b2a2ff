"""What lies around the files to change: links to other places, owners, and whether anything can be written there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ..installation import Installation
from ..links import OWN_COPY
from ..model import Diagnostic, FileStatus, Severity
from ..store import Store, refusal_to_write

_POISONED = (
    "It has other hard links: the edit was made in place, so it is in the package cache (uv, conda) too, and a plain "
    "reinstallation from there brings it back."
)
_CURE = "Empty the cache of it and reinstall (uv cache clean {0}; uv pip install --reinstall --no-deps {0})."


def surroundings(installation: Installation, store: Store, targets: Sequence[str]) -> Iterator[Diagnostic]:
    """What ``doctor`` says of them, each problem once with the number of files that have it."""
    there = [path for path in targets if os.path.lexists(installation.folder / path)]
    yield from _links(installation, there)
    yield from _permissions(installation, store, there)


def through_links(item: Diagnostic, installation: Installation) -> Diagnostic:
    """A diagnostic of an edited file; where other links share the edit it says so, and names another remedy."""
    if item.code != FileStatus.FOREIGN.value or not item.path or not in_the_cache(installation, [item.path]):
        return item
    return replace(item, detail=_POISONED, remedy=cure(installation))


def in_the_cache(installation: Installation, edited: Sequence[str]) -> bool:
    """Whether any of these edited files has other hard links: then the package cache, too, has the edit."""
    return any(_other_links(installation.folder / path) for path in edited)


def cure(installation: Installation) -> str:
    """How to have a file back whose edit is in the package cache."""
    return _CURE.format(installation.distribution)


def _links(installation: Installation, paths: Sequence[str]) -> Iterator[Diagnostic]:
    """Targets that share their bytes with others: behind symbolic links, or as hard links of a package cache."""
    folder = installation.folder
    soft = [path for path in paths if os.path.realpath(folder / path) != str(folder / path)]
    hard = [path for path in paths if path not in soft and _other_links(folder / path)]
    if soft:
        real = os.path.realpath(folder / soft[0])
        what = f"{len(soft)} of the files to change are, or lie behind, symbolic links: {soft[0]} is {real}"
        yield Diagnostic("linked", Severity.ERROR, what, remedy=f"{OWN_COPY}.", path=soft[0])
    if hard:
        detail = "They are replaced, never written in place: the other names keep their bytes."
        yield Diagnostic("linked", Severity.NOTE, f"{len(hard)} of the files to change have other hard links", detail)


def _permissions(installation: Installation, store: Store, paths: Sequence[str]) -> Iterator[Diagnostic]:
    """Folders that cannot be written, and files that only their owner can replace without making them another's."""
    folder = installation.folder
    places = {folder / path for path in (installation.package, *(os.path.dirname(path) for path in paths))}
    places |= {folder / installation.dist_info, _nearest(store.folder)}
    refused = {place: why for place in sorted(places) if (why := refusal_to_write(place))}
    if refused:
        place, why = next(iter(refused.items()))
        more = f", and {len(refused) - 1} more folders" if len(refused) > 1 else ""
        yield _refused(f"{place} cannot be written by this user: {why}{more}", "Run as the owner of the installation.")
    others = [path for path in paths if os.geteuid() != 0 and (folder / path).lstat().st_uid != os.geteuid()]
    if others:
        owner = (folder / others[0]).lstat().st_uid
        what = f"{len(others)} of the files to change belong to another user: {others[0]} to user {owner}"
        yield _refused(what, "Run as their owner, or as root.")


def _refused(summary: str, remedy: str) -> Diagnostic:
    return Diagnostic("environment_refused", Severity.ERROR, summary, remedy=remedy)


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next(item for item in (folder, *folder.parents) if item.is_dir())


def _other_links(path: Path) -> int:
    """How many other names a file's bytes have."""
    try:
        return path.lstat().st_nlink - 1
    except OSError:
        return 0
