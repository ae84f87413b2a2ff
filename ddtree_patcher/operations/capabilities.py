"""What tests showed of a patchset on each release, as a test run recorded it: read from a JSON file.

The format is described in docs/writing-a-patchset.md; a test run writes it, nothing else does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from ..errors import UsageError
from ..model import Capability

SCHEMA = "ddtree-patch.capabilities/1"


def load_capabilities(path: Path) -> tuple[Capability, ...]:
    """Every capability of a record, in its order. Raises ``UsageError``, naming the file, for what is no record."""
    try:
        value: Any = json.loads(path.read_bytes())
        if value["schema"] != SCHEMA:
            raise ValueError(f"its schema is {value['schema']!r}, and this tool reads {SCHEMA!r}")
        return tuple(
            Capability(str(row["id"]), str(row["title"]), _tests(row["shown"]), _tests(row["refused"]))
            for row in value["capabilities"]
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, InvalidVersion) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise UsageError(
            f"{path} is not a record of capabilities: {reason}",
            remedy="A test run writes one: see docs/writing-a-patchset.md.",
            path=str(path),
        ) from error


def _tests(value: Mapping[str, list[str]]) -> dict[str, tuple[str, ...]]:
    found = {}
    for version, tests in sorted(value.items(), key=lambda item: Version(item[0])):
        if not isinstance(tests, list) or not all(isinstance(test, str) for test in tests):
            raise TypeError(f"{version} has {tests!r}, which is no list of tests")
        found[version] = tuple(tests)
    return found
