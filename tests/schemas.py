"""The published schemas of docs/schema, and what a value has against its own."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "schema"


@cache
def published() -> dict[str, Any]:
    """File name → schema."""
    return {path.name: json.loads(path.read_bytes()) for path in sorted(FOLDER.glob("*.json"))}


@cache
def validator(name: str) -> Draft202012Validator:
    """Compiled once: a schema refers to others by their file names."""
    files = [(file, Resource.from_contents(schema)) for file, schema in published().items()]
    return Draft202012Validator(published()[name], registry=Registry().with_resources(files))


def schema_of(value: Any) -> str:
    """The file name of the schema that a value says it has. A snapshot and the report on snapshots share a name."""
    name, _, version = str(value["schema"]).removeprefix("ddtree-patch.").partition("/")
    return f"{'snapshot-file' if name == 'snapshot' and 'exit_code' not in value else name}-{version}.json"


def complaints(value: Any, name: str = "") -> list[str]:
    """What is wrong with a value, place by place; empty where it is as its schema says."""
    file = name or schema_of(value)
    if file not in published():
        return [f"docs/schema has no {file}"]
    found = sorted(validator(file).iter_errors(value), key=lambda error: error.validator == "unevaluatedProperties")
    # Where a part is wrong, all that stands beside it counts as unevaluated: the last of these is no complaint then.
    told = [error for error in found if error.validator != "unevaluatedProperties"] or found
    return [f"{file}: {error.json_path}: {error.message}"[:1000] for error in told]
