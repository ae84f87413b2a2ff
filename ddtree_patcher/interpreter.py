"""Asks a Python interpreter about itself, and where it would import a package from, without importing that."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import EnvironmentRefused, UsageError

Facts = dict[str, Any]  # what an interpreter answers: see _ASK

_ASK = """
import importlib.util, json, sys, sysconfig
sys.path[:] = [item for item in sys.path if item]
name = sys.argv[1]
spec = importlib.util.find_spec(name)
print(json.dumps({
    "executable": sys.executable,
    "version": "%d.%d.%d" % sys.version_info[:3],
    "prefix": sys.prefix,
    "base_prefix": sys.base_prefix,
    "stdlib": sysconfig.get_path("stdlib"),
    "sites": sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}),
    "found": spec is not None,
    "origin": spec.origin if spec else None,
    "places": list(spec.submodule_search_locations or ()) if spec else [],
}))
"""
PATIENCE = 60.0  # seconds for an interpreter to start and answer


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python, in its own words. ``managed`` is the text of PEP 668's marker; empty where there is none."""

    executable: str
    version: str
    prefix: str
    sites: tuple[str, ...]
    managed: str = ""


def interpreter_of(facts: Facts) -> Interpreter:
    """The interpreter that answered so."""
    return Interpreter(
        executable=facts["executable"],
        version=facts["version"],
        prefix=facts["prefix"],
        sites=tuple(facts["sites"]),
        managed=managed(facts),
    )


def own_facts() -> Facts:
    """The same facts of the interpreter that runs this, which was not asked about a package."""
    import sysconfig

    return {
        "executable": sys.executable,
        "version": ".".join(map(str, sys.version_info[:3])),
        "prefix": sys.prefix,
        "base_prefix": sys.base_prefix,
        "stdlib": sysconfig.get_path("stdlib"),
        "sites": sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}),
        "found": False,
        "origin": None,
        "places": [],
    }


def ask(python: str, package: str) -> Facts:
    """What another interpreter answers. Refuses what is no Python, and one that does not answer in time."""
    import subprocess  # late: the commands that name no interpreter start faster without
    import tempfile

    # Absolute, as it runs in another folder; not resolved, as a virtual environment is found by its own path.
    program = os.path.abspath(python) if "/" in python else python
    command: Sequence[str] = [program, "-c", _ASK, package]
    try:
        with tempfile.TemporaryDirectory() as empty:
            done = subprocess.run(
                command, capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE, cwd=empty, check=False
            )
    except OSError as error:
        raise UsageError(
            f"--python {python} cannot be run: {error.strerror}",
            remedy="Name a Python interpreter, as .venv/bin/python.",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise EnvironmentRefused(f"{python} did not answer in {PATIENCE:.0f} s", remedy="Run it by hand.") from error
    try:
        facts = json.loads(done.stdout)
    except ValueError as error:
        tail = done.stderr.decode("utf-8", "replace").strip()[-400:]
        raise UsageError(
            f"--python {python} is not a working Python interpreter",
            detail=tail,
            remedy="Name a Python interpreter, as .venv/bin/python.",
        ) from error
    assert isinstance(facts, dict)
    return facts


def managed(facts: Facts) -> str:
    """The text of PEP 668's marker; empty in a virtual environment and where there is none."""
    if facts["prefix"] != facts["base_prefix"]:
        return ""
    marker = Path(facts["stdlib"]) / "EXTERNALLY-MANAGED"
    return marker.read_text("utf-8", "replace").strip() if marker.is_file() else ""
