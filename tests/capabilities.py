"""A pytest plug-in: which tests show what of DDTREE on which release, recorded by a run in which they passed.

A test says so itself: ``@pytest.mark.shows("grammar")``, or ``@pytest.mark.shows("grammar", refused=True)`` where it
shows that the thing is refused, with a message. The release is its parameter ``version``.

``--record-capabilities FILE`` writes what a run showed, and only where nothing in it failed; with ``--collect-only``,
what would be shown if all passed. ``make supported-releases`` does the former, and makes ``docs/supported-releases.md``
of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from ddtree_patcher.operations.capabilities import SCHEMA

# What users ask for, with the heading of its column. A test may show nothing else.
TITLES = {
    "grammar": "grammar",
    "logprobs": "logprobs",
    "overlap": "overlap scheduling",
    "page-size": "page size > 1",
    "delta-net": "hybrid: gated delta net",
    "mamba2": "hybrid: Mamba2",
    "kda": "hybrid: KDA",
    "lightning": "hybrid: lightning",
    "short-convolution": "hybrid: short convolution",
    "tensor-parallel": "tensor parallel",
}

Claim = tuple[str, bool, str, str]  # capability, whether it is refused, version, test
_PROPERTY = "shows"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-capabilities", metavar="FILE", help="Write which capabilities this run showed.")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--record-capabilities")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(Path(path)), "capability-recorder")


def claims_of(item: pytest.Item) -> list[Claim]:
    """What a test claims to show. Raises ``UsageError`` for an unknown capability, or a test without a release."""
    found: list[Claim] = []
    for mark in item.iter_markers("shows"):
        try:
            capability, refused = _arguments(*mark.args, **mark.kwargs)
        except TypeError as error:
            raise pytest.UsageError(f"{item.nodeid}: the mark is shows(capability, refused=False): {error}") from error
        callspec = getattr(item, "callspec", None)
        version = callspec.params.get("version") if callspec else None
        if capability not in TITLES:
            raise pytest.UsageError(f"{item.nodeid} shows {capability!r}, which is none of {', '.join(TITLES)}")
        if not isinstance(version, str):
            raise pytest.UsageError(f"{item.nodeid} shows {capability!r} on no release: it has no parameter `version`")
        found.append((capability, refused, version, item.nodeid.partition("[")[0]))
    return found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # Reports carry this to the process that records, which under xdist has no items of its own.
        item.user_properties += [(_PROPERTY, list(claim)) for claim in claims_of(item)]


def record(claims: Iterable[Claim]) -> dict[str, Any]:
    """The content of the file, the same whatever the order in which tests ran."""
    known = set(claims)

    def tests(capability: str, refused: bool) -> Mapping[str, list[str]]:
        mine = [claim for claim in known if claim[:2] == (capability, refused)]
        versions = sorted({claim[2] for claim in mine}, key=Version)
        return {version: sorted(claim[3] for claim in mine if claim[2] == version) for version in versions}

    rows = [
        {"id": name, "title": title, "shown": tests(name, False), "refused": tests(name, True)}
        for name, title in TITLES.items()
    ]
    return {"schema": SCHEMA, "capabilities": rows}


class Recorder:
    """Listens to a run, and writes what it showed when it has ended well."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.passed: set[Claim] = set()
        self.written = False

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.config.option.collectonly:
            self.passed = {claim for item in session.items for claim in claims_of(item)}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.passed |= {tuple(value) for name, value in report.user_properties if name == _PROPERTY}

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.OK:
            text = json.dumps(record(self.passed), indent=1, ensure_ascii=False)
            self.path.write_text(text + "\n", "utf-8")
            self.written = True

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        shown = len({claim[:3] for claim in self.passed})
        said = f"{shown} capabilities of releases are recorded in {self.path}"
        terminalreporter.write_line(said if self.written else f"{self.path} is as it was: not every test passed")


def _arguments(capability: str, refused: bool = False) -> tuple[str, bool]:
    return capability, refused
