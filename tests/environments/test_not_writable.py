"""Installations that cannot be written, and disks that are full: looking works, and a write is refused whole."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ddtree_patcher.model import Tier
from ddtree_patcher.operations.inspecting import status
from ddtree_patcher.operations.verifying import verify
from transaction.world import CHANGED, World

from .places import NOBODY, Place, as_user, ended

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture
def locked_world(open_world: Place) -> Iterator[Place]:
    """The same world, whose folders and files nobody may write; to be looked at as another user."""
    yield open_world
    for path in (open_world.site, *open_world.site.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)


def close(world: World) -> None:
    for path in (world.site, *world.site.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)


def looking(world: World) -> list[Any]:
    """The commands that never write, as (exit code, outcome)."""
    reports = [ended(lambda: status(world.session(), check=True))]
    reports += [ended(lambda: verify(world.session(), Tier.STATIC, None))]
    return [(item.code, item.text) for item in reports]


class TestReadOnlyFolders:
    def test_nemo_rl_3913_status_and_verify_need_no_write_access(self, locked_world: Place) -> None:
        assert locked_world.apply(Tier.STATIC).exit_code == 0
        close(locked_world)
        before = locked_world.footprint()
        assert as_user(NOBODY, lambda: looking(locked_world)) == [(0, "applied"), (0, "ok")]
        assert locked_world.footprint() == before

    def test_nemo_rl_3913_what_is_applied_already_needs_no_write_access_to_be_applied(
        self, locked_world: Place
    ) -> None:
        """The lock is no file, and nothing is written where nothing changes."""
        assert locked_world.apply(Tier.STATIC).exit_code == 0
        close(locked_world)
        before = locked_world.footprint()
        again = as_user(NOBODY, lambda: ended(lambda: locked_world.apply(Tier.STATIC)))
        assert again.code == 0, again
        assert locked_world.footprint() == before

    def test_nothing_is_applied_and_nothing_is_left(self, locked_world: Place) -> None:
        close(locked_world)
        before = locked_world.footprint()
        applied, looked = as_user(NOBODY, lambda: (ended(locked_world.apply), ended(locked_world.doctor)))
        assert (applied.code, looked.code) == (6, 6)
        assert "state folder" in applied.text and "--state-dir" in applied.text
        assert [text for _, text in looked.diagnostics if "cannot be written by this user: Permission denied" in text]
        assert locked_world.footprint() == before

    def test_a_state_folder_elsewhere_does_not_help_and_is_left_empty(self, locked_world: Place) -> None:
        close(locked_world)
        elsewhere = locked_world.base / "states"
        elsewhere.mkdir(mode=0o777)
        elsewhere.chmod(0o777)
        locked_world.options["state_dir"] = str(elsewhere)
        before = locked_world.footprint()
        refused = as_user(NOBODY, lambda: ended(locked_world.apply))
        assert refused.code == 6 and "Permission denied" in refused.text
        assert locked_world.footprint() == before
        assert [path for path in elsewhere.rglob("*") if path.is_file()] == []

    def test_one_folder_that_cannot_be_written_undoes_all(self, open_world: Place) -> None:
        """The last file's: the others were staged before it is found out."""
        if os.geteuid() == 0:
            for path in (open_world.base, *open_world.base.rglob("*")):
                os.chown(path, NOBODY, NOBODY)
        pristine = open_world.footprint()
        (open_world.site / "tiny-1.0.dist-info").chmod(0o555)
        before = open_world.footprint()
        refused = as_user(NOBODY, lambda: ended(open_world.apply))
        assert refused.code == 6 and "Everything was put back" in refused.text
        assert open_world.footprint() == before
        (open_world.site / "tiny-1.0.dist-info").chmod(pristine["tiny-1.0.dist-info/"][1])
        assert as_user(NOBODY, lambda: ended(open_world.apply).code) == 0

    def test_reverting_what_cannot_be_written_is_refused_and_the_patch_stays_whole(self, open_world: Place) -> None:
        if os.geteuid() == 0:
            for path in (open_world.base, *open_world.base.rglob("*")):
                os.chown(path, NOBODY, NOBODY)
        as_user(NOBODY, lambda: ended(open_world.apply))
        (open_world.site / "tiny/sub").chmod(0o555)
        before = open_world.footprint()
        refused, now = as_user(NOBODY, lambda: (ended(open_world.revert), open_world.status()))
        assert (refused.code, now) == (6, "applied")
        assert open_world.footprint() == before
        (open_world.site / "tiny/sub").chmod(0o755)
        assert as_user(NOBODY, lambda: ended(open_world.revert).code) == 0


PROGRAM = """
    import json, subprocess, sys
    from pathlib import Path
    from ddtree_patcher.model import Tier
    from environments.places import Place, ended
    from environments.test_not_writable import looking
    from transaction.world import World

    def mount(*arguments):
        subprocess.run(["mount", *map(str, arguments)], check=True)

    base = Path(sys.argv[1])
    world = Place(base, where=base / "site")
    answers = []
"""


def in_own_mounts(world: Place, text: str) -> list[Any]:
    """What a program answers that mounts file systems for itself alone; skipped where this user may not do that."""
    ways = [["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"]]
    for way in ways:
        try:
            probe = [*way, "mount", "-t", "tmpfs", "tmpfs", str(world.base / "patchset")]
            if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
                break
        except FileNotFoundError:
            continue
    else:
        pytest.skip("this user may not mount anything, also not in a namespace of its own")
    program = textwrap.dedent(PROGRAM) + textwrap.dedent(text) + "\nprint(json.dumps(answers))\n"
    command = [*way, sys.executable, "-c", program, str(world.base)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)])}
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment, check=False)
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert isinstance(answers, list)
    return answers


class TestMounts:
    def test_nemo_rl_3913_a_read_only_mount(self, open_world: Place) -> None:
        """Root, too, may not write there, whatever the permission bits say."""
        assert open_world.apply(Tier.STATIC).exit_code == 0
        applied = open_world.footprint()
        looked, again, reverted, elsewhere, told = in_own_mounts(
            open_world,
            """
            mount("--bind", world.site, world.site)
            mount("-o", "remount,bind,ro", world.site)
            answers.append(looking(world))
            answers.append(ended(lambda: world.apply(Tier.STATIC)))
            answers.append(ended(world.revert))
            world.options["state_dir"] = str(base / "states")
            answers.append(ended(world.apply))
            answers.append(ended(world.doctor))
            """,
        )
        assert looked == [[0, "applied"], [0, "ok"]]
        assert again[0] == 0
        assert reverted[0] == 6 and "Read-only file system" in reverted[1]
        assert elsewhere[0] in (4, 6)  # without its state the patch is a foreign edit
        assert told[0] == 6 and [text for _, text in told[2] if "Read-only file system" in text]
        assert open_world.footprint() == applied and open_world.status() == "applied"

    def test_a_pristine_read_only_mount(self, open_world: Place) -> None:
        before = open_world.footprint()
        looked, refused, elsewhere = in_own_mounts(
            open_world,
            """
            mount("--bind", world.site, world.site)
            mount("-o", "remount,bind,ro", world.site)
            answers.append(looking(world))
            answers.append(ended(world.apply))
            world.options["state_dir"] = str(base / "states")
            answers.append(ended(world.apply))
            """,
        )
        assert looked == [[3, "clean"], [5, "clean"]]
        assert refused[0] == 6 and "state folder" in refused[1] and "Read-only file system" in refused[1]
        assert elsewhere[0] == 6 and "Read-only file system" in elsewhere[1]
        assert open_world.footprint() == before

    def test_ruff_26480_a_disk_that_is_full(self, open_world: Place) -> None:
        """A real one, with room for ever more pages: either all is there afterwards, or nothing was changed."""
        ends = in_own_mounts(
            open_world,
            """
            import os, shutil
            full = base / "full"
            full.mkdir()
            mount("-t", "tmpfs", "-o", "size=512k", "tmpfs", full)
            shutil.copytree(world.site, full / "site")
            small = Place(base, where=full / "site")
            for pages in range(24):
                filler = os.open(full / "filler", os.O_CREAT | os.O_WRONLY)
                try:
                    while os.write(filler, bytes(4096)):
                        pass
                except OSError:
                    os.ftruncate(filler, os.fstat(filler).st_size - pages * 4096)
                before = small.footprint()
                code, text, _ = ended(lambda: small.apply(Tier.STATIC))
                answers.append([code, text, before == small.footprint(), small.status()])
                os.close(filler)
                os.unlink(full / "filler")
                if code == 0:
                    small.revert()
            """,
        )
        codes = [code for code, *_ in ends]
        assert codes == sorted(codes, reverse=True) and set(codes) == {0, 6}  # refused until there is room for all
        for code, text, same, outcome in ends:
            if code == 0:
                assert outcome == "applied" and not same
            else:
                assert outcome == "clean" and "No space left" in text and same
        assert codes.count(6) >= 5


@pytest.mark.parametrize("limit", [0, 30, 100, 400])
def test_ruff_26480_files_that_may_not_grow(open_world: Place, limit: int) -> None:
    """What a quota does, where nothing can be mounted: a write ends short and the next one fails."""
    if os.geteuid() == 0:
        for path in (open_world.base, *open_world.base.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    before = open_world.footprint()

    def limited() -> Any:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        result = ended(open_world.apply)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return result

    refused = as_user(NOBODY, limited)
    assert refused.code == 6 and "File too large" in refused.text
    assert open_world.footprint() == before and open_world.status() == "clean"
    assert as_user(NOBODY, lambda: ended(open_world.apply).code) == 0
    assert b"new" in open_world.read(CHANGED[0])
