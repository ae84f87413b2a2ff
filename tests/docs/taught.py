"""The patchset that docs/writing-a-patchset.md teaches, as its reader would save it after its first and last step."""

from __future__ import annotations

import re
from pathlib import Path

from pages import ROOT, blocks

PAGE = ROOT / "docs" / "writing-a-patchset.md"


def one_shape() -> str:
    """``__init__.py`` after step 1."""
    return _code("1-a-folder-with-one-step", "python")


def two_shapes() -> str:
    """``__init__.py`` after step 6."""
    text = edited(one_shape(), _code("5-a-variant-for-the-other-shape", "diff"))
    return edited(text, _code("6-a-contract-and-a-smoke-program", "diff"))


def program() -> str:
    """``smoke.py``."""
    return _code("programs-the-smoke-and-e2e-tiers", "python")


def save(folder: Path, text: str) -> Path:
    """The patchset's folder."""
    folder.mkdir()
    (folder / "__init__.py").write_text(text, "utf-8")
    (folder / "smoke.py").write_text(program(), "utf-8")
    return folder


def edited(text: str, diff: str) -> str:
    """The text after a diff whose hunks have no numbers: the old lines of each must be there exactly once."""
    for hunk in re.split(r"^@@.*\n", diff, flags=re.M)[1:]:
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] in " -")
        new = "".join(line[1:] for line in lines if line[0] in " +")
        assert text.count(old) == 1, f"{text.count(old)} places for\n{hunk}"
        text = text.replace(old, new)
    return text


def _code(section: str, language: str) -> str:
    (text,) = [item.text for item in blocks(PAGE) if item.section == section and item.language == language]
    return text
