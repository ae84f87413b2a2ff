"""Whose a file is, and who may read and write it: as before, whoever runs the tool and with whatever umask."""

from __future__ import annotations

import errno
import os
import stat
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from ddtree_patcher.model import ExitCode, Tier
from transaction.world import ADDED, CHANGED, MODULES, RECORD, World

from .places import NOBODY, Place, as_user, ended

OURS = (*CHANGED, RECORD)
OWNER, GROUP = 4242, 4243
root_alone = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.installed(tmp_path.resolve() / "world")


def give(folder: Path, owner: int, group: int) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner, group)


def owners(folder: Path) -> Mapping[str, tuple[int, int]]:
    return {
        path.relative_to(folder).as_posix(): ((status := path.lstat()).st_uid, status.st_gid)
        for path in sorted(folder.rglob("*"))
    }


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


class TestModes:
    @pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777], ids=oct)
    def test_python_patch_18_path_tiny_221_every_file_keeps_its_mode(self, world: World, mask: int) -> None:
        """Wheels carry both 0644 and 0755; a read-only and a private file stay so, under any umask."""
        wanted = dict(zip(OURS, (0o755, 0o400, 0o604), strict=True))
        for path, bits in wanted.items():
            (world.site / path).chmod(bits)
        before, old = world.footprint(), os.umask(mask)
        try:
            assert world.apply(Tier.STATIC).exit_code == 0
            assert {path: mode(world.site / path) for path in OURS} == wanted
            assert world.revert().exit_code == 0
        finally:
            os.umask(old)
        assert world.footprint() == before

    @pytest.mark.parametrize("mask", [0o000, 0o077, 0o777], ids=oct)
    @pytest.mark.parametrize(
        ("folder", "file", "made"),
        [
            (0o755, 0o644, 0o755),
            (0o750, 0o640, 0o750),
            (0o700, 0o600, 0o700),
            (0o775, 0o664, 0o775),
            (0o777, 0o664, 0o775),
        ],
        ids=lambda bits: f"{bits:o}",
    )
    def test_what_is_added_takes_after_its_folder_and_never_after_the_umask(
        self, world: World, mask: int, folder: int, file: int, made: int
    ) -> None:
        (world.site / "tiny").chmod(folder)
        world.site.chmod(folder)
        old = os.umask(mask)
        try:
            world.apply()
        finally:
            os.umask(old)
        assert mode(world.site / ADDED) == file
        assert {mode(parent) for parent in ((world.site / ADDED).parent, world.site / "tiny/made")} == {made}
        assert {mode(path) for path in (world.state, world.state / "objects")} == {made}
        assert {mode(path) for path in world.state.rglob("*") if path.is_file()} == {file}
        assert world.revert().exit_code == 0 and not world.state.exists()

    def test_a_named_state_folder_below_one_that_all_may_write_is_not_for_all_to_write(
        self, world: World, tmp_path: Path
    ) -> None:
        (tmp_path / "scratch").mkdir()
        (tmp_path / "scratch").chmod(0o1777)
        world.options["state_dir"] = str(tmp_path / "scratch/states")
        world.apply()
        found = list((tmp_path / "scratch").rglob("*"))
        assert len(found) > 3 and not [path for path in found if mode(path) & 0o022]

    def test_a_setgid_folder_hands_its_group_on(self, world: World) -> None:
        """A shared environment: what is added stays the group's, as what pip adds would."""
        groups = [*os.getgroups(), os.getegid()]
        group = GROUP if os.geteuid() == 0 else groups[0]
        for path in (world.site, *(item for item in world.site.rglob("*") if item.is_dir())):
            os.chown(path, -1, group)
            path.chmod(0o2775)
        before = world.footprint()
        assert world.apply(Tier.STATIC).exit_code == 0
        for path in (world.state, world.state / "objects", world.site / "tiny/made", (world.site / ADDED).parent):
            assert (path.stat().st_gid, mode(path)) == (group, 0o2775)
        assert ((world.site / ADDED).stat().st_gid, mode(world.site / ADDED)) == (group, 0o664)
        assert world.revert().exit_code == 0 and world.footprint() == before


class TestOwners:
    @root_alone
    def test_loguccino_17_rapidquilt_26_files_that_root_patches_stay_their_owners(self, world: World) -> None:
        """Also what is added and kept is theirs: root lends a hand, and leaves nothing of its own."""
        give(world.site, OWNER, GROUP)
        os.chown(world.site / CHANGED[1], OWNER + 1, GROUP + 1)
        before, pristine = owners(world.site), world.footprint()
        assert world.apply(Tier.STATIC).exit_code == 0
        after = owners(world.site)
        assert {path: after[path] for path in before} == before
        added = set(after) - set(before)
        assert {ADDED, "tiny/made", ".ddtree-patch", ".ddtree-patch/state.json"} <= added
        assert {after[path] for path in added} == {(OWNER, GROUP)}
        assert world.revert().exit_code == 0
        assert owners(world.site) == before and world.footprint() == pristine

    @root_alone
    def test_what_root_applied_its_owner_can_look_at_and_revert(self, open_world: Place) -> None:
        give(open_world.base, NOBODY, NOBODY)
        pristine = open_world.footprint()
        old = os.umask(0o077)
        try:
            open_world.apply()
        finally:
            os.umask(old)
        assert as_user(NOBODY, lambda: (open_world.status(), ended(open_world.revert).code)) == ("applied", 0)
        assert open_world.footprint() == pristine

    @root_alone
    @pytest.mark.parametrize("folders", [0o755, 0o777], ids=oct)
    def test_nemo_platform_1321_another_user_is_refused_and_nothing_changes(
        self, open_world: Place, folders: int
    ) -> None:
        """Where the folders are for all to write, a rename would work, and make the files that user's."""
        for path in (open_world.site, *open_world.site.rglob("*")):
            if path.is_dir():
                path.chmod(folders)
            else:
                path.chmod(0o644)
        before, whose = open_world.footprint(), owners(open_world.site)
        applied, looked = as_user(NOBODY, lambda: (ended(open_world.apply), ended(open_world.doctor)))
        assert (applied.code, looked.code) == (6, 6)
        assert "Run as" in applied.text
        assert [text for _, text in looked.diagnostics if "belong to another user" in text]
        assert (open_world.footprint(), owners(open_world.site)) == (before, whose)
        if folders == 0o777:
            assert "belongs to user 0" in applied.text

    @root_alone
    def test_a_group_that_the_user_is_not_in_cannot_be_kept_and_is_not_lost(self, open_world: Place) -> None:
        give(open_world.base, NOBODY, NOBODY)
        os.chown(open_world.site / CHANGED[0], NOBODY, GROUP)
        before, whose = open_world.footprint(), owners(open_world.site)
        refused = as_user(NOBODY, lambda: ended(open_world.apply))
        assert refused.code == 6 and f"group {GROUP}" in refused.text and "root" in refused.text
        assert (open_world.footprint(), owners(open_world.site)) == (before, whose)

    @root_alone
    def test_a_root_that_may_not_give_files_away_keeps_what_it_adds(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """In a container without that right, or root of a few users only: what is replaced stays its owner's."""

        def refuse(*args: object, **options: object) -> None:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

        for path in (world.site, *world.site.rglob("*")):
            if path.is_dir():
                os.chown(path, OWNER, GROUP)
        before = world.footprint()
        monkeypatch.setattr(os, "fchown", refuse)
        monkeypatch.setattr(os, "chown", refuse)
        assert world.apply(Tier.STATIC).exit_code == 0 and owners(world.site)[ADDED] == (0, 0)
        assert world.revert().exit_code == 0 and world.footprint() == before
        monkeypatch.undo()
        os.chown(world.site / CHANGED[1], OWNER, GROUP)
        monkeypatch.setattr(os, "fchown", refuse)
        assert ended(world.apply).code == 6
        assert world.footprint() == before and owners(world.site)[CHANGED[1]] == (OWNER, GROUP)

    @root_alone
    def test_cef_387_bytecode_that_root_puts_back_is_its_owners(self, world: World) -> None:
        cache = world.site / "tiny/__pycache__/alpha.cpython-399.pyc"
        cache.parent.mkdir()
        cache.write_bytes(b"old bytecode")
        give(world.site, OWNER, GROUP)
        before = owners(world.site)
        world.apply()
        assert not cache.exists()
        assert world.revert().exit_code == 0
        assert owners(world.site) == before and cache.read_bytes() == b"old bytecode"


ACL = "system.posix_acl_access"
DEFAULT_ACL = "system.posix_acl_default"


def acl(group: int, mask: int, other: int) -> bytes:
    """An access control list, as the kernel takes it: the owner reads and writes, one more user reads."""
    none = 0xFFFFFFFF
    rows = [(1, 6, none), (2, 4, OWNER), (4, group, none), (16, mask, none), (32, other, none)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row) for row in rows)


def put(path: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.EOPNOTSUPP):
            raise
        pytest.skip(f"the file system of {path} has no {name.partition('.')[0]} attributes")


def attributes(world: World) -> Mapping[str, Mapping[str, bytes]]:
    return {
        path: {name: os.getxattr(world.site / path, name) for name in os.listxattr(world.site / path)}
        for path in (*MODULES, RECORD)
    }


class TestAttributes:
    def test_user_attributes_stay(self, world: World) -> None:
        for path in OURS:
            put(world.site / path, "user.origin", f"from {path}".encode())
            put(world.site / path, "user.empty", b"")
        before, pristine = attributes(world), world.footprint()
        assert world.apply(Tier.STATIC).exit_code == 0
        assert attributes(world) == before and os.listxattr(world.site / ADDED) == []
        assert world.revert().exit_code == 0
        assert attributes(world) == before and world.footprint() == pristine

    def test_access_control_lists_stay(self, world: World) -> None:
        put(world.site / CHANGED[0], ACL, acl(4, 4, 0))
        put(world.site / CHANGED[1], ACL, acl(6, 6, 4))
        before, pristine = attributes(world), world.footprint()
        assert world.apply(Tier.STATIC).exit_code == 0
        assert attributes(world) == before
        assert (mode(world.site / CHANGED[0]), mode(world.site / CHANGED[1])) == (0o640, 0o664)
        assert world.revert().exit_code == 0
        assert attributes(world) == before and world.footprint() == pristine

    def test_a_folder_that_gives_lists_to_new_files_gives_none_to_replaced_ones(self, world: World) -> None:
        put(world.site / "tiny", DEFAULT_ACL, acl(4, 4, 0))
        put(world.site / "tiny/sub", DEFAULT_ACL, acl(6, 6, 4))
        before, pristine = attributes(world), world.footprint()
        assert world.apply(Tier.STATIC).exit_code == 0
        assert attributes(world) == before and ACL in os.listxattr(world.site / ADDED)
        assert world.revert().exit_code == 0
        assert attributes(world) == before and world.footprint() == pristine

    def test_an_attribute_that_cannot_be_kept_ends_the_run_and_everything_is_put_back(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(world.site / CHANGED[1], "user.origin", b"x")
        before, real = (attributes(world), world.footprint()), os.setxattr

        def full(file: object, name: str, value: bytes) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "setxattr", full)
        refused = ended(world.apply)
        monkeypatch.setattr(os, "setxattr", real)
        assert refused.code == ExitCode.ENVIRONMENT_REFUSED and "No space left" in refused.text
        assert (attributes(world), world.footprint()) == before

    def test_a_file_system_without_attributes(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        def none(*args: object, **options: object) -> list[str]:
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

        before = world.footprint()
        monkeypatch.setattr(os, "listxattr", none)
        assert world.apply(Tier.STATIC).exit_code == 0
        assert world.revert().exit_code == 0 and world.footprint() == before


def test_what_the_tests_of_lists_set_is_what_the_system_reads(world: World) -> None:
    """Or they would compare noise: the second user's right shows in what ``ls`` calls the mask."""
    put(world.site / CHANGED[0], ACL, acl(0, 4, 0))
    assert mode(world.site / CHANGED[0]) == 0o640
    if subprocess.run(["which", "getfacl"], capture_output=True, check=False).returncode == 0:
        said = subprocess.check_output(["getfacl", "-n", str(world.site / CHANGED[0])], encoding="utf-8")
        assert f"user:{OWNER}:r--" in said
