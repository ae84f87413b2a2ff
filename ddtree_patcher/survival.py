"""By which variant each step found its place in each release: what is known of the past when a place is not there.

A survival file is made by ``matrix`` for a patchset that comes with the tool, and lies beside the snapshots, outside of
the patchset: its digest does not depend on it. This module produces bytes; it never writes a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packaging.version import InvalidVersion, Version

from . import resources
from .errors import UsageError
from .model import History, ReleaseResult

SCHEMA = "ddtree-patch.survival/1"


@dataclass(frozen=True, slots=True)
class Survival:
    """Step -> release -> the variant by which it found its place; empty where it did not."""

    patchset: str = ""
    steps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def variant(self, step: str, release: str) -> str:
        """The variant by which the step found its place in a release; empty where it did not, or nothing is known."""
        return self.steps.get(step, {}).get(release, "")

    def goes_back(self, step: str, variant: str, release: str) -> bool:
        """Whether that variant is one of a release before this one, and not that of the release which comes next."""
        known = {Version(name): found for name, found in self.steps.get(step, {}).items()}
        before = [found for name, found in known.items() if name < Version(release)]
        after = sorted(name for name in known if name > Version(release))
        return variant in before and (not after or known[after[0]] != variant)

    def history(self, step: str, version: str, *, published: bool = False) -> History:
        """Up to which release the step found its place, for a tree that says it is ``version`` and has it not.

        ``published``: the tree is that release as it was published, so what is known of that one counts no more.
        Nothing is said of a version that is none, or of one before every release that is known.
        """
        here = _version(version)
        if here is None:
            return History()
        known = {Version(name): found for name, found in self.steps.get(step, {}).items()}
        earlier = sorted(item for item in known if item < here or (item == here and not published))
        matched = [item for item in earlier if known[item]]
        if not matched:
            return History()
        failed = [item for item in earlier if item > matched[-1]]
        return History(str(matched[-1]), str(failed[0]) if failed else version)


def survived(patchset: str, rows: Iterable[ReleaseResult]) -> Survival:
    """What became of every step in the releases that were looked at."""
    steps: dict[str, dict[str, str]] = {}
    for row in rows:
        for step in row.steps:
            steps.setdefault(step.id, {})[row.version] = "" if step.outcome.is_conflict else step.variant
    return Survival(patchset, steps)


def to_bytes(survival: Survival) -> bytes:
    """As JSON: one release a line, LF, a newline at the end."""
    document = {"schema": SCHEMA, "patchset": survival.patchset, "steps": survival.steps}
    return (json.dumps(document, indent=1) + "\n").encode()


def from_bytes(data: bytes, *, path: str = "") -> Survival:
    """What ``to_bytes`` wrote. Raises ``UsageError``, naming ``path``, for anything else."""
    try:
        document = json.loads(data)
        if document["schema"] != SCHEMA:
            raise ValueError(f"its schema is {document['schema']!r}")
        for row in document["steps"].values():
            for version in row:
                Version(version)
        steps = {str(step): {str(k): str(v) for k, v in row.items()} for step, row in document["steps"].items()}
        return Survival(str(document["patchset"]), steps)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"{path or 'the file'} is no survival file: {error}",
            remedy="Make it anew with `ddtree-patch matrix --survival FILE`.",
            path=path,
        ) from error


def bundled(folder: Path) -> Survival:
    """What is known of the patchset in ``folder``; nothing of one that does not come with the tool."""
    file = resources.folder("snapshots") / "survival" / f"{folder.name}.json"
    ours = folder.resolve().parent == resources.folder("patchsets").resolve()
    return from_bytes(file.read_bytes(), path=str(file)) if ours and file.is_file() else Survival()


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None
