"""What other patchers were reported for, and what this one does instead. Rows that other tests hold:

| row | report | held by |
|---|---|---|
| 6 | the wrong copy is patched | tests/releases/test_virtual_environment.py, tests/releases/test_stamp.py |
| 7 | a skipped part reads as success | tests/unit/test_planner.py, test_commit.py::TestApply |
| 8 | half applied | tests/transaction/test_recover.py, test_causes.py [row 8] |
| 9 | a status for each start of a service | tests/unit/test_architecture.py::test_what_starts_fast_… |
| 10, 11 | the version string lies | tests/releases/test_release_snapshots.py, tests/unit/test_standing.py |
| 12 | upstream has it, or a half of it | tests/badinput/test_bad_files.py::test_half_upstream_is_left_alone |
| 13 | a new version over the old one | tests/transaction/test_commit.py::TestAnotherPatchset |
| 14 | applied twice | tests/badinput/test_bad_state.py::test_applying_twice_writes_nothing |
| 15 | two patchers at one place | tests/badinput/test_bad_patchset.py, test_causes.py [row 15] |
| 25 | concurrent runs | tests/transaction/test_concurrency.py |
| 27, 28, 29, 35 | wiped, reinstalled, RECORD, backups | test_causes.py |
| 36 | fuzz | tests/badinput/test_bad_files.py::test_two_places_are_both_shown |
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ddtree_patcher import patchset as patchsets
from ddtree_patcher import resources
from ddtree_patcher.errors import PatchsetError
from ddtree_patcher.model import ExitCode
from ddtree_patcher.patchset import Patchset, Step
from ddtree_patcher.records import row_for
from transaction.world import ADDED, CHANGED, RECORD, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.installed(tmp_path.resolve() / "world")


def test_inside_a_git_repository_that_ignores_everything(world: World) -> None:
    """Row 4: ``git apply`` ends with 0 there, and has changed nothing."""
    for name in ("objects", "refs"):
        (world.base / ".git" / name).mkdir(parents=True)
    (world.base / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (world.base / ".gitignore").write_text("*\n")
    report = world.apply()
    assert report.exit_code is ExitCode.OK
    assert b"'new'" in world.read(CHANGED[0]) and b"budget" in world.read(CHANGED[1]) and world.read(ADDED)


def test_a_patchset_without_steps_is_an_error() -> None:
    """Row 5: patches that nobody declared, and a glob that finds none."""
    with pytest.raises(PatchsetError, match="has no steps"):
        Patchset("none", "1", "", "tiny", "tiny", "", ())


def test_every_file_of_the_patchset_is_a_part_of_it() -> None:
    """Row 5: each step that is written is declared, each module is added, each fragment is inserted from."""
    loaded = patchsets.load("ddtree")
    folder = resources.folder("patchsets") / "ddtree"
    name = _module(folder)
    written = {path.stem for path in (folder / "steps").glob("*.py")} - {"__init__"}
    assert {stem for stem in written if f"{name}.steps.{stem}" in sys.modules} == written
    values = [value for stem in written for value in vars(sys.modules[f"{name}.steps.{stem}"]).values()]
    steps = {value.id for value in values if isinstance(value, Step)}
    assert steps == {step.id for step in loaded.patchset.steps}
    added = {Path(path).name for step in loaded.patchset.steps for path in step.added_paths()}
    assert {path.name for path in (folder / "runtime").glob("*.py")} == added
    sources = "".join(path.read_text("utf-8") for path in folder.glob("**/*.py"))
    assert [path.name for path in (folder / "fragments").glob("*.py") if path.name not in sources] == []


def _module(folder: Path) -> str:
    """The name that a patchset has when it is loaded."""
    return next(name for name, item in sys.modules.items() if getattr(item, "__file__", "") == f"{folder}/__init__.py")


def test_what_only_looks_like_the_patch_is_not_taken_for_it(world: World) -> None:
    """Row 37: "is it applied?" answered by a search for a text, not by the digest of what was written."""
    target = world.site / CHANGED[0]
    target.write_bytes(target.read_bytes() + b"# value = 'new'\n")
    (world.site / ADDED).parent.mkdir(parents=True)
    (world.site / ADDED).write_bytes(b"y = 2\n")
    assert world.status() == "drifted"
    assert world.apply().exit_code is ExitCode.CONFLICT
    assert world.revert().outcome == "clean" and (world.site / ADDED).exists()


def test_the_patched_bytes_of_another_make_are_not_taken_for_ours(world: World) -> None:
    """Row 37: byte for byte the patch, as RECORD says it was installed: upstream has it, and a revert takes nothing."""
    assert world.apply().exit_code is ExitCode.OK
    patched = {path: world.read(path) for path in (*CHANGED, ADDED)}
    assert world.revert().exit_code is ExitCode.OK
    rows = world.read(RECORD).decode()
    for path, data in patched.items():
        (world.site / path).parent.mkdir(parents=True, exist_ok=True)
        (world.site / path).write_bytes(data)
        rows = "".join(line for line in rows.splitlines(keepends=True) if not line.startswith(path))
        rows += f"{row_for(path, data)}\r\n"
    (world.site / RECORD).write_bytes(rows.encode())
    before = world.footprint()
    report = world.apply()
    assert {str(step.outcome) for step in report.steps} == {"upstreamed"}
    assert (world.status(), world.revert().outcome) == ("clean", "clean")
    assert world.footprint() == before
