"""``revert --from-wheel``: what is put back is what RECORD vouches for, and nothing else is touched."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ddtree_patcher.errors import EnvironmentRefused, PatchError, UsageError
from ddtree_patcher.model import ExitCode, FileStatus, Report
from ddtree_patcher.operations.restoring import revert_from_wheel
from ddtree_patcher.records import row_for
from small_wheel import make_wheel
from transaction.world import ADDED, CHANGED, MODULES, RECORD, World

ALPHA, BETA = CHANGED
OTHER = "tiny/other.py"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.installed(tmp_path.resolve() / "world")


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return make_wheel(tmp_path / "wheels", "1.0", MODULES, name="tiny")


def put_back(world: World, wheel: Path, *, discard_edits: bool = False) -> Report:
    return revert_from_wheel(world.session(), wheel, discard_edits=discard_edits)


def lost(world: World) -> None:
    """Apply, and lose the state folder."""
    assert world.apply().exit_code is ExitCode.OK
    shutil.rmtree(world.state)


def test_every_byte_mode_and_row_comes_back_without_a_state(world: World, wheel: Path) -> None:
    before = world.footprint()
    lost(world)
    (world.site / "tiny/__pycache__").mkdir()
    (world.site / "tiny/__pycache__/alpha.cpython-311.pyc").write_bytes(b"of the patched source")
    report = put_back(world, wheel)
    assert (report.exit_code, report.outcome) == (ExitCode.OK, "clean")
    after = world.footprint()
    assert {name: facts[:2] for name, facts in after.items() if name != "tiny/__pycache__/"} == {
        name: facts[:2] for name, facts in before.items()
    }
    untouched = set(before) - {*CHANGED, RECORD}
    assert {name: after[name] for name in untouched} == {name: before[name] for name in untouched}
    assert {item.path: item.status for item in report.files} == {
        ALPHA: FileStatus.PRISTINE,
        BETA: FileStatus.PRISTINE,
        ADDED: FileStatus.MISSING,
    }
    (note,) = report.diagnostics
    assert note.code == "from_wheel" and note.summary.startswith("2 files have the bytes of tiny-1.0-py3-none-any.whl")
    assert world.status() == "clean"


def test_where_the_kept_bytes_are_lost(world: World, wheel: Path) -> None:
    before = world.contents()
    world.apply()
    shutil.rmtree(world.state / "objects")
    with pytest.raises(PatchError, match="has lost the bytes"):
        world.revert()
    assert put_back(world, wheel).exit_code is ExitCode.OK
    assert world.contents() == before and not world.state.exists()


def test_where_nothing_is_to_be_done(world: World, wheel: Path) -> None:
    before = world.footprint()
    assert put_back(world, wheel).files == ()
    assert world.footprint() == before


def test_what_another_version_of_the_patchset_had_added_is_known_by_its_row(world: World, wheel: Path) -> None:
    before = world.contents()
    lost(world)
    world.write_patchset(version="2", content=b"y = 3\n")
    assert put_back(world, wheel).exit_code is ExitCode.OK
    assert world.contents() == before


class TestEdits:
    """A file that is neither the wheel's nor what the patchset makes of it is somebody's work."""

    @pytest.mark.parametrize("path", [ALPHA, ADDED])
    def test_stop_it_unless_told(self, world: World, wheel: Path, path: str) -> None:
        before = world.contents()
        lost(world)
        (world.site / path).write_bytes(b"mine = 1\n")
        edited = world.footprint()
        report = put_back(world, wheel)
        assert report.exit_code is ExitCode.CONFLICT
        assert [(item.code, item.path) for item in report.diagnostics] == [("foreign", path)]
        assert "--discard-edits" in report.diagnostics[0].remedy
        assert world.footprint() == edited
        assert put_back(world, wheel, discard_edits=True).exit_code is ExitCode.OK
        assert world.contents() == before

    def test_elsewhere_stay_and_are_named(self, world: World, wheel: Path) -> None:
        before = world.contents()
        lost(world)
        (world.site / OTHER).write_bytes(b"mine = 1\n")
        report = put_back(world, wheel)
        assert report.exit_code is ExitCode.OK
        assert world.contents() == {**before, OTHER: b"mine = 1\n"}
        assert [item.path for item in report.diagnostics if item.code == "foreign"] == [OTHER]
        assert put_back(world, wheel, discard_edits=True).exit_code is ExitCode.OK
        assert world.contents() == before

    def test_that_were_accepted_are_no_less_theirs(self, world: World, wheel: Path) -> None:
        (world.site / ALPHA).write_bytes(b"import os\n\nvalue = 'old'\nmine = 1\n")
        assert world.apply(allow_drift=True).exit_code is ExitCode.OK
        before = world.footprint()
        assert put_back(world, wheel).exit_code is ExitCode.CONFLICT
        assert world.footprint() == before

    def test_of_another_patchset_are_not_ours(self, world: World, wheel: Path) -> None:
        """Row 37: that a file looks as if it were patched proves nothing."""
        lost(world)
        world.write_patchset(value="something else")
        before = world.footprint()
        report = put_back(world, wheel)
        assert [item.path for item in report.diagnostics] == [ALPHA]
        assert world.footprint() == before


def damaged(wheel: Path) -> None:
    wheel.write_bytes(wheel.read_bytes()[:200])


def absent(wheel: Path) -> None:
    wheel.unlink()


def changed_within(wheel: Path) -> None:
    """One member is not what the wheel's own RECORD says."""
    with zipfile.ZipFile(wheel) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data.replace(b"'old'", b"'bad'"))


def remade(**how: object) -> Callable[[Path], None]:
    def make(wheel: Path) -> None:
        wheel.unlink()
        options = {"version": "1.0", "files": MODULES, "name": "tiny", **how}
        make_wheel(wheel.parent, **options).rename(wheel)  # type: ignore[arg-type]

    return make


REFUSED = {
    "another version": (remade(version="1.1"), UsageError, "is of 1.1, not of 1.0"),
    "another distribution": (remade(name="huge"), UsageError, "is of huge, not of tiny"),
    "another build": (
        remade(files={path: text + "#\n" for path, text in MODULES.items()}),
        UsageError,
        "is another build of 1.0: 5 files differ from RECORD",
    ),
    "one file another": (
        remade(files={**MODULES, OTHER: "x = 2\n"}),
        EnvironmentRefused,
        "RECORD disagrees with tiny-1.0-py3-none-any.whl about tiny/other.py",
    ),
    "one file too many": (
        remade(files={**MODULES, "tiny/more.py": "x = 2\n"}),
        EnvironmentRefused,
        "RECORD disagrees with tiny-1.0-py3-none-any.whl about tiny/more.py",
    ),
    "a wheel that denies itself": (changed_within, EnvironmentRefused, "is not what the wheel's RECORD says"),
    "no RECORD": (remade(record="x"), UsageError, "is damaged"),
    "half a wheel": (damaged, UsageError, "is not a readable wheel"),
    "no wheel": (absent, UsageError, "No such file"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("discard_edits", [False, True])
def test_a_wheel_that_is_not_this_installations_is_refused(
    world: World, wheel: Path, case: str, discard_edits: bool
) -> None:
    spoil, kind, says = REFUSED[case]
    lost(world)
    spoil(wheel)
    before = world.footprint()
    with pytest.raises(kind, match=says.replace("(", r"\(")) as caught:
        put_back(world, wheel, discard_edits=discard_edits)
    assert caught.value.remedy
    assert world.footprint() == before


def test_a_rewritten_record_proves_no_wheel(world: World, wheel: Path) -> None:
    lost(world)
    record = world.read(RECORD).decode()
    old, new = row_for(ALPHA, MODULES[ALPHA].encode()), row_for(ALPHA, world.read(ALPHA))
    (world.site / RECORD).write_bytes(record.replace(old, new).encode())
    before = world.footprint()
    with pytest.raises(EnvironmentRefused, match=r"RECORD disagrees .* about tiny/alpha\.py") as caught:
        put_back(world, wheel)
    assert "pip install --force-reinstall" in caught.value.remedy
    assert world.footprint() == before


@pytest.mark.parametrize("call", range(1, 5))
def test_a_failure_on_the_way_puts_everything_back(
    world: World, wheel: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """It goes through the transaction."""
    lost(world)
    before, count, replace = world.contents(), 0, os.replace

    def failing(source: object, target: object) -> None:
        nonlocal count
        inside = "/.ddtree-patch/" not in str(target)
        count += inside
        if inside and count == call:
            raise OSError(28, "No space left on device", str(target))
        replace(source, target)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "replace", failing)
    if call < 4:  # two files and RECORD
        with pytest.raises(EnvironmentRefused, match="No space left"):
            put_back(world, wheel)
        assert world.contents() == before and not world.state.exists()
    else:
        assert put_back(world, wheel).exit_code is ExitCode.OK
