"""The plan and the state are data: bounded before they are read, checked before they are used, and never run."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ddtree_patcher.errors import EnvironmentRefused, PatchError, UsageError
from ddtree_patcher.model import Diagnostic, ExitCode, Report, Severity
from ddtree_patcher.operations import planning
from ddtree_patcher.operations.session import Options, Session
from ddtree_patcher.report import as_text
from ddtree_patcher.store import distrust
from transaction.world import World

GIGABYTE = 1 << 30
FILES = ["state.json", "journal.json"]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.installed(tmp_path.resolve() / "world")


def bytes_read(work: Callable[[], object]) -> int:
    """How many bytes this process reads meanwhile, by the kernel's own count."""

    def count() -> int:
        return int(Path("/proc/self/io").read_text().partition("rchar: ")[2].split()[0])

    before = count()
    work()
    return count() - before


def sparse(path: Path) -> None:
    """A file of a gigabyte that takes no room."""
    with path.open("wb") as file:
        file.truncate(GIGABYTE)


@pytest.mark.parametrize("command", ["status", "apply", "revert"])
@pytest.mark.parametrize("name", FILES)
def test_a_state_of_a_gigabyte_is_refused_before_it_is_read(world: World, name: str, command: str) -> None:
    world.apply()
    sparse(world.state / name)

    def run() -> None:
        with pytest.raises(PatchError, match=f"{name} is too large to be ours") as caught:
            getattr(world, command)()
        assert caught.value.remedy and caught.value.exit_code is ExitCode.ERROR

    assert bytes_read(run) < 4 << 20


def test_a_plan_of_a_gigabyte_is_refused_before_it_is_read(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    sparse(plan)

    def run() -> None:
        with pytest.raises(UsageError, match="too large to be a plan"):
            planning.load_plan(str(plan))

    assert bytes_read(run) < 8 << 20


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", ["pipe", "endless"])
def test_what_never_ends_is_not_read(world: World, name: str, kind: str) -> None:
    """A pipe that nobody writes to, and a device that never stops."""
    world.apply()
    (world.state / name).unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(world.state / name)
    else:
        (world.state / name).symlink_to("/dev/zero")
    with pytest.raises(PatchError, match=f"{name} is no file"):
        world.status()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "data",
    [b"[" * 200_000, b'{"a":' * 100_000, b"9" * 5_000, b"\xff\xfe", b'{"schema": NaN}', b'"' + b"\\ud800" * 9 + b'"'],
    ids=["lists", "objects", "digits", "no-utf-8", "no-number", "no-letters"],
)
def test_json_that_would_hurt_is_refused(world: World, name: str, data: bytes) -> None:
    world.apply()
    before = world.contents()
    (world.state / name).write_bytes(data)
    for command in (world.status, world.apply, world.revert):
        with pytest.raises(PatchError) as caught:
            command()
        assert name in caught.value.summary and caught.value.remedy
    assert world.contents() == before


PATHS = [
    "../outside.py",
    "/etc/passwd",
    "tiny/../../outside.py",
    "tiny\\outside.py",
    "tiny/\0.py",
    ".",
    "",
    "tiny/\x1b[2J",
]


def edited(world: World, name: str, change: Callable[[Any], None]) -> None:
    value = json.loads((world.state / name).read_bytes())
    change(value)
    (world.state / name).write_text(json.dumps(value))


@pytest.mark.parametrize("path", PATHS, ids=ascii)
@pytest.mark.parametrize("where", ["files", "caches", "folders", "record", "drift"])
def test_a_path_in_the_state_that_leaves_the_tree(world: World, where: str, path: str) -> None:
    """Nothing is looked at, restored or removed there."""
    (world.base / "outside.py").write_text("mine\n")
    world.apply()

    def change(value: Any) -> None:
        if where == "folders":
            value[where] = [path]
        elif where == "drift":
            value[where] = {path: "0" * 64}
        elif where == "record":
            value[where]["path"] = path
        else:
            value[where] = [{**value["files"][0], "path": path}]

    edited(world, "state.json", change)
    before = world.contents()
    for command in (world.status, world.apply, world.revert):
        with pytest.raises(PatchError, match="is damaged"):
            command()
    assert world.contents() == before and (world.base / "outside.py").read_text() == "mine\n"


@pytest.mark.parametrize("digest", ["../../../../../../dev/zero", "state.json", "0" * 63, "0" * 65, "A" * 64, 7, None])
def test_a_digest_that_is_none(world: World, digest: object) -> None:
    """It would name a file: that of the kept bytes."""
    world.apply()
    edited(world, "state.json", lambda value: value["files"][0].update(pristine_sha256=digest))
    with pytest.raises(PatchError, match="is damaged"):
        world.revert()


def test_kept_bytes_are_compared_with_their_digest_before_they_are_used(world: World) -> None:
    world.apply()
    before = world.contents()
    for kept in (world.state / "objects").iterdir():
        kept.write_bytes(kept.read_bytes() + b"import evil\n")
    with pytest.raises(PatchError, match="is damaged") as caught:
        world.revert()
    assert caught.value.remedy and world.contents() == before


@pytest.mark.parametrize("link", [".ddtree-patch", ".ddtree-patch/objects"])
def test_a_state_folder_that_is_a_link_is_not_tidied_up(world: World, link: str) -> None:
    """What lies behind it is not ours: neither ``*.tmp`` files nor what looks like old kept bytes."""
    theirs = world.base / "theirs"
    theirs.mkdir()
    for name in ("work.tmp", "0" * 64, "probe"):
        (theirs / name).write_text("mine")
    place = world.site / link
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(theirs)
    before = world.contents()
    for command in (world.status, world.apply, world.revert):
        with pytest.raises(EnvironmentRefused, match="symbolic link") as caught:
            command()
        assert "--state-dir" in caught.value.remedy
    assert sorted(item.name for item in theirs.iterdir()) == ["0" * 64, "probe", "work.tmp"]
    assert world.contents() == before


@pytest.mark.parametrize("place", ["beside", "named"])
def test_the_state_folder_is_not_for_others_to_write_whatever_the_umask_is(world: World, place: str) -> None:
    state = world.state if place == "beside" else world.base / "a/b/state"
    if place == "named":
        world.options["state_dir"] = str(state)
    before = os.umask(0)
    try:
        assert world.apply().exit_code is ExitCode.OK
    finally:
        os.umask(before)
    found = [state, *state.rglob("*")]
    assert len(found) > 4
    for path in found:
        assert not path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH), path
    for path in ("tiny/alpha.py", "tiny/sub/beta.py"):
        assert stat.S_IMODE((world.site / path).stat().st_mode) == {"tiny/alpha.py": 0o640}.get(path, 0o755)


def test_a_private_umask_keeps_the_state_private(world: World) -> None:
    before = os.umask(0o077)
    try:
        world.apply()
    finally:
        os.umask(before)
    assert all(not path.stat().st_mode & 0o022 for path in world.state.rglob("*"))


@pytest.mark.parametrize("command", ["status", "apply", "revert"])
@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777])
def test_a_state_that_others_could_have_written_is_not_believed(world: World, mode: int, command: str) -> None:
    """A folder named with --state-dir may lie where everybody writes: its state would put bytes into the tree."""
    world.options["state_dir"] = str(world.base / "state")
    world.apply()
    (state,) = (world.base / "state").iterdir()
    state.chmod(mode)
    before = world.contents()
    with pytest.raises(EnvironmentRefused, match="anybody's") as caught:
        getattr(world, command)()
    assert "chmod" in caught.value.remedy and world.contents() == before
    state.chmod(0o755)
    assert world.status() == "applied"


def test_a_state_may_be_written_by_those_who_may_write_the_tree(world: World) -> None:
    world.apply()
    for folder in (world.site, world.state):
        folder.chmod(0o775)
    assert world.status() == "applied"


@pytest.mark.parametrize(
    ("owner", "of_tree", "me", "believed"),
    [
        (7, 7, 7, True),
        (0, 7, 7, True),
        (7, 7, 0, True),
        (7, 0, 7, True),
        (7, 7, 8, True),
        (9, 7, 7, False),
        (9, 7, 0, False),
    ],
)
def test_whose_state_is_believed(owner: int, of_tree: int, me: int, believed: bool) -> None:
    def folder(uid: int) -> os.stat_result:
        return os.stat_result((0o40755, 0, 0, 1, uid, 0, 0, 0, 0, 0))

    assert bool(distrust(folder(owner), folder(of_tree), me)) is not believed


def test_what_is_shown_tells_a_terminal_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """A line of code, or a path, with an escape sequence in it is shown as such."""
    from rich.console import Console

    what = Diagnostic(
        "usage", Severity.ERROR, "a\x1b[2Jb", "line 1: \x1b]0;title\x07x = 1\n\tsecond", "do\x9b it", path="p\x7f"
    )
    as_text.render(Report("plan", ExitCode.USAGE, "usage", diagnostics=(what,)), Console(no_color=True))
    shown = capsys.readouterr().out
    assert "a\\x1b[2Jb" in shown and "\\x1b]0;title\\x07x = 1" in shown and "second" in shown
    assert not {"\x1b", "\x07", "\x7f", "\x9b"} & set(shown)


def test_a_session_reads_nothing_of_a_state_that_is_not_there(world: World) -> None:
    assert Session(Options(root=str(world.site), patchset=str(world.patchset))).state() is None
    assert not world.state.exists()
