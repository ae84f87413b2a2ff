"""``diff`` on a tiny installed package: every kind of change, for the steps that touch it and for those that do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ddtree_patcher.errors import UsageError
from ddtree_patcher.model import ExitCode
from ddtree_patcher.operations import diffing
from ddtree_patcher.snapshot import capture, to_bytes

from .world import CHANGED, World

ALPHA, BETA = CHANGED
GONE, OTHER = "tiny/gone.py", "tiny/other.py"


def against(world: World, files: dict[str, str], *, exit_code: bool = False, version: str = "0.9") -> Any:
    """The report of ``diff``, where the release before was ``files``."""

    def read(path: str) -> bytes:
        if path not in files:
            raise FileNotFoundError(path)
        return files[path].encode()

    watched = sorted({ALPHA, BETA, OTHER, *files})
    path = world.base / "before.json"
    path.write_bytes(to_bytes(capture("tiny", version, watched, read)))
    return diffing.diff(world.session(), str(path), text=False, exit_code=exit_code)


def same(world: World) -> dict[str, str]:
    return {path: world.read(path).decode() for path in (ALPHA, BETA, OTHER)}


def rows(report: Any) -> dict[tuple[str, str], Any]:
    return {(row["change"], row["symbol"]): row for row in report.extra["changes"]}


def meaning(report: Any) -> dict[str, Any]:
    return {row["step"]: row for row in report.extra["meaning"]}


def test_the_same_release_differs_in_nothing(world: World) -> None:
    report = against(world, same(world), exit_code=True, version="1.0")
    assert report.exit_code is ExitCode.OK and report.extra["changes"] == []
    assert report.extra["snapshot"] == {
        "version": "1.0",
        "chosen": "named",
        "agreement": 1.0,
        "files": 3,
        "identical_files": 3,
    }
    assert all(row["changed_symbols"] == [] for row in report.extra["meaning"])


def test_a_changed_field_is_the_business_of_the_step_that_stands_beside_it(world: World) -> None:
    before = {**same(world), BETA: "class Args:\n    size: str\n    gone: int = 2\n"}
    report = against(world, before, exit_code=True)
    assert report.exit_code is ExitCode.CHANGES
    found = rows(report)
    assert found["changed", "Args.size"]["details"] == ["type: str → int", "has a default now"]
    assert found["changed", "Args.size"]["touched_by"] == ["field"]
    assert found["removed", "Args.gone"]["touched_by"] == []
    assert meaning(report)["field"]["changed_symbols"] == [f"{BETA}:Args.size"]
    assert meaning(report)["value"]["changed_symbols"] == []
    assert report.extra["snapshot"]["identical_files"] == 2


def test_only_comments_changed(world: World) -> None:
    report = against(world, {**same(world), BETA: "class Args:\n    size: int = 1  # before\n"})
    row = rows(report)["reformatted", "Args.size"]
    assert row["details"] == ["only formatting, comments or docstrings changed"]
    assert row["touched_by"] == ["field"]


def test_a_symbol_that_moved_here_from_a_file_that_is_gone(world: World) -> None:
    before = {path: text for path, text in same(world).items() if path != BETA}
    report = against(world, {**before, GONE: "class Other:\n    size: int = 1\n"})
    found = rows(report)
    moved = found["moved", "Other.size"]
    assert (moved["path"], moved["moved_to"], moved["line"]) == (GONE, f"{BETA}:Args.size", 2)
    assert moved["touched_by"] == ["field"]
    assert found["file_added", ""]["path"] == BETA and found["file_added", ""]["touched_by"] == ["field"]
    assert found["file_removed", ""]["path"] == GONE and found["file_removed", ""]["touched_by"] == []
    assert found["added", "Args"]["touched_by"] == []


def test_a_symbol_that_is_gone_has_a_namesake_where_one_is_new(world: World) -> None:
    """Also one that moved and changed is seen, and not said to be the same."""
    before = {**same(world), BETA: "class Old:\n    size: str = 'x'\n    other: int = 1\n    __slots__ = ()\n"}
    found = rows(against(world, before))
    assert found["removed", "Old.size"]["namesake"] == f"{BETA}:Args.size"
    assert found["removed", "Old.other"]["namesake"] == found["removed", "Old.__slots__"]["namesake"] == ""
    assert found["added", "Args.size"]["touched_by"] == ["field"]


def test_module_level_code_is_the_business_of_a_step_that_edits_there(world: World) -> None:
    report = against(world, {**same(world), ALPHA: "import sys\n\nvalue = 'old'\n"})
    row = rows(report)["changed", "<module>"]
    assert (row["details"], row["touched_by"]) == (["imports or module-level statements changed"], ["value"])


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("def size(): ...", "class size: ...", ["was a function, is a class", "() → nothing"]),
        ("def size(): return 1", "def size(): return 2", ["body changed"]),
        ("def size(a): ...", "def size(a, b=1): ...", ["parameter b added, default 1"]),
        ("size = 1", "size = 2", ["value changed"]),
        ("class size: 1 + 1", "class size: 2 + 2", ["decorators or class-level statements changed"]),
        ("class C:\n    size: int = 1", "class C:\n    size: int = 2", ["default or options changed"]),
        ("class C(Enum):\n    size = 1", "class C(Enum):\n    size = 2", ["value changed"]),
        ("class C:\n    size = 1", "class C(Enum):\n    size = 1", ["was a constant, is a member"]),
    ],
)
def test_what_changed_of_a_symbol_is_said_in_words(world: World, before: str, after: str, said: list[str]) -> None:
    (world.site / OTHER).write_text(after + "\n")
    found = rows(against(world, {**same(world), OTHER: before + "\n"}))
    name = "C.size" if "C" in before else "size"
    assert found["changed", name]["details"] == said


def test_a_step_without_a_place_says_where_it_was_looked_for(world: World) -> None:
    (world.site / BETA).write_bytes(b"class Args:\r\n    sizes: int = 1\r\n")
    report = against(world, same(world) | {BETA: "class Args:\n    size: int = 1\n"})
    row = meaning(report)["field"]
    assert (row["prospect"], row["outcome"], row["path"]) == ("needs_work", "anchor_missing", BETA)
    assert BETA in row["reason"]
    assert report.exit_code is ExitCode.OK  # ``diff`` tells; ``plan`` refuses


def test_the_variants_of_the_release_are_looked_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """No survival file comes with this patchset, so nothing is known; with one, it is believed of releases alone."""
    assert {row["prospect"] for row in against(world, same(world)).extra["meaning"]} == {"fits"}
    steps = {"value": {"0.9": "one"}, "field": {"0.9": ""}, "file": {"0.8": "one"}}
    monkeypatch.setattr(diffing, "survival_of", lambda folder: diffing.Survival("small", steps))
    assert {row["prospect"] for row in against(world, same(world)).extra["meaning"]} == {"fits"}
    monkeypatch.setattr(
        diffing, "of_release", lambda distribution, version: diffing.load(str(world.base / "before.json"))
    )
    found = meaning(against(world, same(world)))
    assert {name: row["prospect"] for name, row in found.items()} == {
        "value": "still_fits",
        "field": "fits",
        "file": "fits",
    }
    assert {name: row["snapshot_variant"] for name, row in found.items()} == {"value": "one", "field": "", "file": None}


def test_an_applied_patch_is_no_difference(world: World) -> None:
    before = same(world)
    world.apply()
    assert against(world, before, exit_code=True).exit_code is ExitCode.OK


def test_an_unknown_snapshot_is_a_clear_error(world: World, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no snapshot '9\.9\.9'") as refused:
        diffing.diff(world.session(), "9.9.9", text=False, exit_code=False)
    assert "name a file, or one of" in refused.value.remedy and "0.5.18" in refused.value.remedy
