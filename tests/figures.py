"""Figures that tests print at the end of a run: how many of what they tried. ``figure("fault points", 120)``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

_PREFIX = "figure: "
Figure = Callable[[str, int], None]


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Figure:
    """``figure(what, number)``: added to what other tests tried of it, and printed when all have ended."""

    def add(what: str, number: int) -> None:
        record_property(_PREFIX + what, number)

    return add


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    totals: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", ()):
        for name, value in report.user_properties:
            if name.startswith(_PREFIX):
                totals[name.removeprefix(_PREFIX)] += value
    if totals:
        terminalreporter.section("figures")
        for what, number in sorted(totals.items()):
            terminalreporter.write_line(f"{number:>8,} {what}")
