"""Attestations: what a patched tree is, as an in-toto Statement (https://github.com/in-toto/attestation, ``spec/v1``).

The same tree gives the same bytes: no time, no path of a machine. ``docs/attestation.md`` describes the predicate.
What is read is data from anywhere: its size is bounded, its paths stay in the tree, and fields that are not known are
ignored, as in-toto wants it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import __version__
from .errors import UsageError
from .model import PatchsetIdentity, StepOutcome, StepResult
from .store import inside, line_in

STATEMENT = "https://in-toto.io/Statement/v1"
# A UUID made for this, and a version: nobody has to own a domain or to register a name for it to be ours alone.
PREDICATE = "urn:uuid:1bbd1bfd-f40c-46d0-ae18-3b331db78a34#patched-tree-v1"
LIMIT = 4 * 1024 * 1024  # bytes: a patch of a thousand files has a tenth of that

Digests = Mapping[str, str]  # path, relative to the folder that holds the package -> SHA-256, lower-case hex


@dataclass(frozen=True, slots=True)
class Attestation:
    """What is said of one patched tree."""

    subjects: Digests  # every file that the patch changed or added, as it is on disk
    distribution: str  # the release that it was applied to
    version: str  # likewise
    pristine: Digests  # the changed files as they were before
    patchset: PatchsetIdentity
    steps: tuple[StepResult, ...]
    checks: Mapping[str, tuple[str, ...]]  # tier -> the checks that ran, and passed, when it was attested
    whole: bool = True  # every step was selected
    drift: Digests = field(default_factory=dict)  # files that were not as RECORD says, and accepted; empty: no file
    tool: str = __version__


# --- as bytes ----------------------------------------------------------------------------------------------------


def to_bytes(attestation: Attestation) -> bytes:
    """The statement as JSON: files by path, LF, a newline at the end."""
    made = attestation
    statement = {
        "_type": STATEMENT,
        "subject": _descriptors(made.subjects),
        "predicateType": PREDICATE,
        "predicate": {
            "base": {
                "name": made.distribution,
                "version": made.version,
                "files": _descriptors(made.pristine),
                "acceptedDrift": dict(sorted(made.drift.items())),
            },
            "patchset": {
                "name": made.patchset.id,
                "version": made.patchset.version,
                "digest": {"sha256": made.patchset.digest},
            },
            "tool": {"name": "ddtree-patch", "version": made.tool},
            "whole": made.whole,
            "steps": [{"name": step.id, "outcome": step.outcome.value, "variant": step.variant} for step in made.steps],
            "checksPassed": {tier: list(names) for tier, names in made.checks.items()},
        },
    }
    return json.dumps(statement, indent=2).encode() + b"\n"


def _descriptors(digests: Digests) -> list[dict[str, object]]:
    return [{"name": path, "digest": {"sha256": digest}} for path, digest in sorted(digests.items())]


# --- read --------------------------------------------------------------------------------------------------------


def load(path: Path) -> Attestation:
    """Read a file. Raises ``UsageError`` for one that cannot be read, or that is not a statement of this kind."""
    try:
        with open(path, "rb") as file:
            data = file.read(LIMIT + 1)
    except OSError as error:
        raise UsageError(f"the attestation {path} cannot be read: {error.strerror}", remedy=_REMEDY) from error
    return from_bytes(data, path=str(path))


def from_bytes(data: bytes, *, path: str = "") -> Attestation:
    """What ``to_bytes`` wrote. Raises ``UsageError``, naming ``path``, for anything else."""
    name = path or "the attestation"
    if len(data) > LIMIT:
        raise UsageError(f"{name} is too large to be an attestation", remedy=_REMEDY)
    try:
        return _attestation(json.loads(data, object_pairs_hook=_each_once))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        remedy = _ENVELOPE if "DSSE" in what else _REMEDY
        raise UsageError(f"{name} is not an attestation of a patched tree: {what}", remedy=remedy) from error


_REMEDY = "Make one with `ddtree-patch status --attest FILE`, where the patch is applied."
_ENVELOPE = "Check its signature (cosign, in-toto-verify), and name a file with its payload, decoded (base64 -d)."
_DIGEST = re.compile(r"[0-9a-f]{64}")


def _attestation(value: Any) -> Attestation:
    if not isinstance(value, dict):
        raise ValueError("it holds no JSON object")
    if "payloadType" in value and "_type" not in value:
        raise ValueError("it is a DSSE envelope, which holds a statement and its signatures")
    for key, wanted in (("_type", STATEMENT), ("predicateType", PREDICATE)):
        if value.get(key) != wanted:
            raise ValueError(f"its {key} is {_shown(value.get(key))}, not {wanted!r}")
    predicate = value["predicate"]
    base, patchset = predicate["base"], predicate["patchset"]
    subjects = _digests(value["subject"], "subject")
    if not subjects:
        raise ValueError("it has no subject")
    return Attestation(
        subjects=subjects,
        distribution=line_in(base["name"]),
        version=line_in(base["version"]),
        pristine=_digests(base["files"], "base file"),
        patchset=PatchsetIdentity(line_in(patchset["name"]), line_in(patchset["version"]), _sha256(patchset["digest"])),
        steps=tuple(
            StepResult(line_in(step["name"]), StepOutcome(step["outcome"]), line_in(step["variant"]))
            for step in _list(predicate["steps"])
        ),
        checks={line_in(tier): tuple(map(line_in, _list(names))) for tier, names in predicate["checksPassed"].items()},
        whole=predicate["whole"] is True,
        drift={inside(name): _digest(given) if given else "" for name, given in base["acceptedDrift"].items()},
        tool=line_in(predicate["tool"]["version"]),
    )


def _digests(rows: object, what: str) -> Digests:
    """Resource descriptors, each with a name of its own and a SHA-256; other digests of theirs are ignored."""
    found: dict[str, str] = {}
    for row in _list(rows):
        name = inside(line_in(row["name"]))
        if name in found:
            raise ValueError(f"it names the {what} {name} twice")
        found[name] = _sha256(row["digest"])
    return found


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two readers must not see two statements in one file."""
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"it has {_shown(twice)} twice in one object")
    return dict(pairs)


def _sha256(digests: Mapping[str, object]) -> str:
    return _digest(digests["sha256"])


def _digest(value: object) -> str:
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise ValueError(f"{_shown(value)} is no SHA-256 digest: 64 lower-case hexadecimal digits")
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{_shown(value)} is no list")
    return value


def _shown(value: object) -> str:
    """In a few characters, of which none tells a terminal anything."""
    return ascii(value)[:80]
