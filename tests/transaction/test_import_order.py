"""An import that lands after its use (LibCST #1023): what compiles need not run, so a fresh process imports it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ddtree_patcher.model import CheckOutcome, ExitCode, Tier
from ddtree_patcher.records import row_for

from .world import World

PATCHSET = """\
from ddtree_patcher.codemods import EnsureImport, ReplaceExpression
from ddtree_patcher.patchset import Patchset, Step, Variant

A = "tiny/alpha.py"
EDITS = (EnsureImport(A, "tiny.other", "x"), ReplaceExpression(A, "", "'old'", "x"))
PATCHSET = Patchset(
    id="small", version="1", summary="", distribution="tiny", package="tiny", supports=">=1",
    steps=(Step("value", "it is x", "", (Variant("one", edits=EDITS),)),),
)
"""
GOOD = "import os\nfrom tiny.other import y\n\nvalue = 'old'\n"
LATE = "import os\n\nvalue = 'old'\n\nfrom tiny.other import y\n"


def ship(world: World, text: str) -> None:
    (world.site / "tiny/other.py").write_text("x, y = 1, 2\n")
    (world.site / "tiny/alpha.py").write_text(text)
    record = world.site / "tiny-1.0.dist-info/RECORD"
    kept = [line for line in record.read_text().splitlines() if not line.startswith(("tiny/alpha.py", "tiny/other.py"))]
    rows = [row_for(path, world.read(path)) for path in ("tiny/alpha.py", "tiny/other.py")]
    record.write_text("\r\n".join([*rows, *kept, ""]), newline="")
    (world.patchset / "__init__.py").write_text(PATCHSET)


def test_an_import_before_its_use_runs(world: World) -> None:
    ship(world, GOOD)
    report = world.apply(Tier.IMPORT)
    assert report.exit_code is ExitCode.OK, report.diagnostics
    program = "import tiny.alpha; print(tiny.alpha.value)"
    command = [sys.executable, "-B", "-S", "-E", "-c", program]
    assert subprocess.run(command, cwd=world.site, check=True, capture_output=True, text=True).stdout == "1\n"


@pytest.mark.parametrize("tier", [Tier.STATIC, Tier.IMPORT])
def test_an_import_after_its_use_compiles_and_is_put_back(world: World, tier: Tier) -> None:
    """The static tier cannot see it; the import tier runs it, and the whole application is undone."""
    ship(world, LATE)
    before = world.contents()
    report = world.apply(tier)
    if tier is Tier.STATIC:
        assert report.exit_code is ExitCode.OK
        return
    assert report.exit_code is ExitCode.VERIFICATION_FAILED
    (failed,) = [item for item in report.checks if item.outcome is CheckOutcome.FAILED]
    assert failed.tier is Tier.IMPORT and "NameError" in failed.detail
    assert world.contents() == before
