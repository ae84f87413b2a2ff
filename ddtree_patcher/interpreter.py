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
import importlib.util, json, site, sys, sysconfig
sys.path[:] = [item for item in sys.path if item]
name = sys.argv[1]
spec = importlib.util.find_spec(name)
print(json.dumps({
    "executable": sys.executable,
    "version": "%d.%d.%d" % sys.version_info[:3],
    "prefix": sys.prefix,
    "base_prefix": sys.base_prefix,
    "pycache_prefix": sys.pycache_prefix,
    "stdlib": sysconfig.get_path("stdlib"),
    "sites": sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}),
    "shared_sites": site.getsitepackages(),
    "found": spec is not None,
    "origin": spec.origin if spec else None,
    "places": list(spec.submodule_search_locations or ()) if spec else [],
}))
"""
PATIENCE = 60.0  # seconds for an interpreter to start and answer


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python, in its own words.

    ``managed`` is the text of PEP 668's marker, and ``managed_sites`` the folders that it speaks of; empty where there
    is none. A virtual environment's own folders are never among them, those of the system that it lets through are.
    """

    executable: str
    version: str
    prefix: str
    sites: tuple[str, ...]
    managed: str = ""
    managed_sites: tuple[str, ...] = ()
    pycache_prefix: str = ""  # where its bytecode goes, an absolute path; empty: beside the sources


def interpreter_of(facts: Facts) -> Interpreter:
    """The interpreter that answered so."""
    return Interpreter(
        executable=facts["executable"],
        version=facts["version"],
        prefix=facts["prefix"],
        sites=tuple(facts["sites"]),
        managed=managed(facts),
        managed_sites=managed_sites(facts) if managed(facts) else (),
        pycache_prefix=prefix if os.path.isabs(prefix := facts["pycache_prefix"] or "") else "",
    )


def own_facts() -> Facts:
    """The same facts of the interpreter that runs this, which was not asked about a package."""
    import site
    import sysconfig

    return {
        "executable": sys.executable,
        "version": ".".join(map(str, sys.version_info[:3])),
        "prefix": sys.prefix,
        "base_prefix": sys.base_prefix,
        "pycache_prefix": sys.pycache_prefix,
        "stdlib": sysconfig.get_path("stdlib"),
        "sites": sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}),
        "shared_sites": site.getsitepackages(),
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
    """The text of PEP 668's marker; empty where there is none, and where nothing that is imported is the system's."""
    marker = Path(facts["stdlib"]) / "EXTERNALLY-MANAGED"
    return marker.read_text("utf-8", "replace").strip() if managed_sites(facts) and marker.is_file() else ""


def managed_sites(facts: Facts) -> tuple[str, ...]:
    """The site folders that a marker would speak of: all but those of a virtual environment."""
    sites = sorted({*facts["sites"], *facts.get("shared_sites", ())})
    if facts["prefix"] == facts["base_prefix"]:
        return tuple(sites)
    return tuple(site for site in sites if not Path(site).is_relative_to(facts["prefix"]))
