"""The table of docs/patchsets.md is what `patch`, `git apply` and our tool do today."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import patch_survival
from patch_survival import PROGRAMS, Fate, Made, fate_of, unified
from sglang_releases import SUPPORTED

F = "pkg/f.py"
BEFORE = b"".join(b"line%d = %d\n" % (n, n) for n in range(20))
AFTER = BEFORE.replace(b"line9 = 9\n", b"line9 = 90\n")
MADE = {F: (BEFORE, AFTER)}


@pytest.mark.wheels
@pytest.mark.slow
def test_the_page_is_current(wheel: Callable[[str], Path]) -> None:
    measured = patch_survival.measure({version: wheel(version) for version in SUPPORTED})
    page = patch_survival.PAGE.read_text("utf-8")
    assert patch_survival.page_with(page, patch_survival.render(measured)) == page, "run `make patch-survival`"


def fate(there: bytes, wanted: bytes, program: str = "patch") -> Fate:
    """Of the change above, on a file of this content of which our tool makes ``wanted``."""
    files = {F: (there, wanted)} if wanted != there else {}

    def read(path: str) -> bytes:
        assert path == F
        return there

    return fate_of(unified(MADE), MADE, PROGRAMS[program], Made("", files), read)


class TestFate:
    @pytest.mark.parametrize("program", PROGRAMS)
    def test_at_the_same_lines(self, program: str) -> None:
        assert fate(BEFORE, AFTER, program) is Fate.CLEAN

    @pytest.mark.parametrize("program", PROGRAMS)
    def test_at_other_lines(self, program: str) -> None:
        assert fate(b"# new\n\n" + BEFORE, b"# new\n\n" + AFTER, program) is Fate.OFFSET

    def test_with_fuzz(self) -> None:
        there = BEFORE.replace(b"line6 = 6\n", b"line6 = 7\n")
        wanted = there.replace(b"line9 = 9\n", b"line9 = 90\n")
        assert fate(there, wanted) is Fate.FUZZY
        assert fate(there, wanted, "git apply") is Fate.REJECTED

    def test_in_the_wrong_place(self) -> None:
        """A block that looks alike stands where the old one was: that is what a hunk knows of a place."""
        there = b"def new():\n" + BEFORE.replace(b"line", b"    line") + b"\n\n"
        text = b"def old():\n" + BEFORE.replace(b"line", b"    line")
        changed = text.replace(b"line9 = 9\n", b"line9 = 90\n")
        made = {F: (text, changed)}
        wanted = Made("", {F: (there + text, there + changed)})
        assert fate_of(unified(made), made, PROGRAMS["patch"], wanted, lambda path: there + text) is Fate.WRONG

    @pytest.mark.parametrize("program", PROGRAMS)
    def test_where_it_is_not_needed(self, program: str) -> None:
        assert fate(BEFORE, BEFORE, program) is Fate.NEEDLESS

    @pytest.mark.parametrize("program", PROGRAMS)
    def test_rejected(self, program: str) -> None:
        there = BEFORE.replace(b"line9 = 9\n", b"line9 = 10\n")
        assert fate(there, there + b"x = 1\n", program) is Fate.REJECTED

    @pytest.mark.parametrize("program", PROGRAMS)
    def test_a_file_that_is_gone(self, program: str) -> None:
        def read(path: str) -> bytes:
            raise FileNotFoundError(path)

        elsewhere = Made("", {"pkg/g.py": (BEFORE, AFTER)})
        assert fate_of(unified(MADE), MADE, PROGRAMS[program], elsewhere, read) is Fate.REJECTED


def test_without_a_program_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match="patch is not installed"):
        patch_survival.measure({})


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(SystemExit, match="marks"):
        patch_survival.page_with("# Nothing\n", "|")
