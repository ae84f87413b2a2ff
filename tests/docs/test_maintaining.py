"""docs/maintaining.md draws the layers that the code has."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from pages import ROOT, blocks

PAGE = ROOT / "docs" / "maintaining.md"
ARCHITECTURE = ROOT / "tests" / "unit" / "test_architecture.py"


def layers() -> Sequence[Sequence[str]]:
    """From the bottom up, as the test of the architecture holds them."""
    for node in ast.parse(ARCHITECTURE.read_bytes()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LAYERS":
            found: Sequence[Sequence[str]] = ast.literal_eval(node.value)
            return found
    raise AssertionError(f"no LAYERS in {ARCHITECTURE}")


def picture(of: Sequence[Sequence[str]]) -> str:
    rows = [f'    layer{number}["{" · ".join(names)}"]' for number, names in reversed(list(enumerate(of)))]
    arrows = " --> ".join(f"layer{number}" for number in reversed(range(len(of))))
    return "\n".join(["flowchart TB", *rows, f"    {arrows}", ""])


def test_the_picture_is_that_of_the_code() -> None:
    drawn = [item.text for item in blocks(PAGE) if item.section == "in-one-picture" and item.language == "mermaid"]
    expected = picture(layers())
    assert drawn == [expected], f"the picture of docs/maintaining.md has to be\n{expected}"


def test_the_modules_that_are_named_are_there() -> None:
    named = set(re.findall(r"`((?:tests|tools|patchsets|snapshots|\.ci)/[\w/.-]*)`", PAGE.read_text("utf-8")))
    assert len(named) > 10
    for path in named:
        assert (ROOT / path).exists(), path
