"""What changes between check and write: a link is not followed out of the tree, an edit is left to its owner."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from ddtree_patcher import transaction
from ddtree_patcher.errors import Conflict, EnvironmentRefused, StalePlan
from ddtree_patcher.model import CheckOutcome, CheckResult, ExitCode, Tier
from ddtree_patcher.operations import applying, planning
from transaction.world import ADDED, World

BETA = "tiny/sub/beta.py"
MARK = "ddtree-patch"  # in the name of every temporary file beside a source


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.installed(tmp_path.resolve() / "world")


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], None]], None]:
    """``at(moment, act)``: something happens once, at a moment of the next transaction."""

    def arrange(moment: str, act: Callable[[], None]) -> None:
        todo = [act]

        def once() -> None:
            if todo:
                todo.pop()()

        real_open, real_replace, real_commit = os.open, os.replace, transaction.commit

        def opening(path: object, flags: int, *args: object, **options: object) -> int:
            if flags & os.O_CREAT and MARK in os.path.basename(os.fspath(path)):  # type: ignore[call-overload]
                once()
            return real_open(path, flags, *args, **options)  # type: ignore[call-overload, no-any-return]

        def replacing(source: object, target: object, **options: object) -> None:
            if MARK in os.path.basename(os.fspath(source)):  # type: ignore[call-overload]
                once()
            real_replace(source, target, **options)  # type: ignore[call-overload]

        def committing(*args: object, **options: object) -> object:
            once()
            return real_commit(*args, **options)  # type: ignore[arg-type]

        def checking(*args: object) -> list[CheckResult]:
            once()
            return [CheckResult(Tier.IMPORT, "failing", CheckOutcome.FAILED, "on purpose")]

        if moment == "before it begins":
            monkeypatch.setattr(transaction, "commit", committing)
        elif moment == "while it stages":
            monkeypatch.setattr(os, "open", opening)
        elif moment == "while it replaces":
            monkeypatch.setattr(os, "replace", replacing)
        else:
            monkeypatch.setattr(applying, "run_tiers", checking)

    return arrange


MOMENTS = ["before it begins", "while it stages", "while it replaces", "while it checks"]


def contents(folder: Path) -> Mapping[str, bytes]:
    return {item.relative_to(folder).as_posix(): item.read_bytes() for item in folder.rglob("*") if item.is_file()}


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A folder that is not the tree's, with files of the names that would be written. Nothing in it may change."""
    folder = tmp_path.resolve() / "outside"
    folder.mkdir()
    for name in ("beta.py", "extra.py", "__init__.py"):
        (folder / name).write_bytes(f"mine: {name}\n".encode())
    before = contents(folder)
    yield folder
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("command", "moment"), [*(("apply", item) for item in MOMENTS), *(("revert", item) for item in MOMENTS[:3])]
)
def test_a_folder_that_becomes_a_link_lets_no_byte_out(
    world: World, outside: Path, at: Callable[[str, Callable[[], None]], None], command: str, moment: str
) -> None:
    if command == "revert":
        world.apply()
    before = world.footprint()
    folder, aside = world.site / "tiny/sub", world.base / "aside"

    def swap() -> None:
        folder.rename(aside)
        folder.symlink_to(outside)

    at(moment, swap)
    with pytest.raises(EnvironmentRefused, match="symbolic link") as caught:
        world.apply(Tier.IMPORT) if command == "apply" else world.revert()
    assert caught.value.remedy
    folder.unlink()
    aside.rename(folder)
    world.recover()
    assert world.footprint() == before


def test_an_interrupted_run_is_not_put_back_through_a_link(
    world: World, outside: Path, at: Callable[[str, Callable[[], None]], None]
) -> None:
    """The journal of a dead process names a folder that somebody replaced by a link since."""
    before = world.footprint()
    journal = world.state / "journal.json"

    def die() -> None:
        pid = os.fork()
        if not pid:
            os._exit(0)
        os.waitpid(pid, 0)
        (world.base / "journal").write_bytes(journal.read_bytes())

    at("while it checks", die)
    world.apply(Tier.IMPORT)
    assert world.footprint() == before
    world.apply()
    patched = contents(world.site / "tiny")
    journal.write_bytes((world.base / "journal").read_bytes())  # as if it had died right before its end
    folder, aside = world.site / "tiny/sub", world.base / "aside"
    folder.rename(aside)
    folder.symlink_to(outside)
    with pytest.raises(EnvironmentRefused, match="symbolic link"):
        world.revert()
    assert contents(aside) == {name[4:]: data for name, data in patched.items() if name.startswith("sub/")}


def test_a_folder_that_is_to_be_made_and_appears_as_a_link(
    world: World, outside: Path, at: Callable[[str, Callable[[], None]], None]
) -> None:
    def swap() -> None:
        (world.site / "tiny/made/deep").rmdir()
        (world.site / "tiny/made/deep").symlink_to(outside)

    at("while it stages", swap)
    with pytest.raises(EnvironmentRefused, match="symbolic link"):
        world.apply()
    assert not (outside / ".extra.py").exists()


@pytest.mark.parametrize("target", [BETA, "tiny-1.0.dist-info/RECORD"])
@pytest.mark.parametrize("moment", MOMENTS[:3])
@pytest.mark.parametrize("command", ["apply", "revert"])
def test_a_file_that_somebody_edits_meanwhile_is_theirs(
    world: World, at: Callable[[str, Callable[[], None]], None], command: str, moment: str, target: str
) -> None:
    """The run is refused, everything else is as before, and their bytes are not lost."""
    if command == "revert":
        world.apply()
    before = world.footprint()
    edited = world.read(target) + (b"# theirs\n" if target == BETA else b"theirs.py,,\r\n")
    at(moment, lambda: (world.site / target).write_bytes(edited) and None)
    with pytest.raises(Conflict, match=f"{target} changed since it was planned") as caught:
        world.apply() if command == "apply" else world.revert()
    assert caught.value.remedy and caught.value.exit_code is ExitCode.CONFLICT
    assert world.read(target) == edited
    after = world.footprint()
    assert {path: item for path, item in after.items() if path != target} == {
        path: item for path, item in before.items() if path != target
    }
    assert world.recover() is None  # nothing is left half done


def test_a_file_that_appears_where_one_is_added_is_theirs(
    world: World, at: Callable[[str, Callable[[], None]], None]
) -> None:
    at("while it replaces", lambda: (world.site / ADDED).write_bytes(b"theirs\n") and None)
    with pytest.raises(Conflict, match="changed since it was planned"):
        world.apply()
    assert world.read(ADDED) == b"theirs\n"
    assert world.read("tiny/alpha.py") == b"import os\n\nvalue = 'old'\n"


def test_a_saved_plan_is_bound_to_the_bytes_it_was_made_from(world: World, tmp_path: Path) -> None:
    """A file that changes between plan and apply: refused, named, nothing written."""
    _, prepared = planning.plan(world.session(), planning.Selection())
    saved = tmp_path / "plan.json"
    saved.write_bytes(planning.saved(world.session(), prepared, planning.Selection()))
    (world.site / "tiny/alpha.py").write_bytes(b"import os\n\nvalue = 'old'\nmore = 1\n")
    before = world.footprint()
    plan = planning.load_plan(str(saved))
    with pytest.raises(StalePlan, match=r"tiny/alpha\.py"):
        applying.apply(world.session(), planning.Selection(), applying.Verification(None), plan)
    assert world.footprint() == before
