"""A conflict as the tool prints it, for the documents."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from ddtree_patcher.model import Severity
from ddtree_patcher.operations.planning import Selection, plan
from ddtree_patcher.operations.session import Options, Session
from ddtree_patcher.report import diagnostic_text
from mutations.cases import MUTATIONS
from mutations.judging import mutated


def conflict(site: Path, name: str) -> str:
    """The first error of ``plan`` on a tree with the mutation of that name."""
    (mutation,) = (item for item in MUTATIONS if item.id == name)
    with mutated(site, [mutation]):
        report, _ = plan(Session(Options(root=str(site))), Selection())
    first = next(item for item in report.diagnostics if item.severity is Severity.ERROR)
    console = Console(file=io.StringIO(), width=120, color_system=None)
    diagnostic_text.draw(first, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().strip("\n")
