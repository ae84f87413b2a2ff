"""uv links installed files to its cache, by default as hard links: nothing but this environment may change."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from ddtree_patcher.model import FileStatus, Tier
from transaction.world import ADDED, CHANGED, MODULES, RECORD

from .conftest import MakePlace
from .places import Uv, ended, inodes

SHARED = tuple(MODULES)


def edit_in_place(path: Path, old: bytes, new: bytes) -> None:
    """As other tools do it: the inode stays, and with it every other name's content changes."""
    with open(path, "r+b") as file:
        data = file.read().replace(old, new)
        file.seek(0)
        file.write(data)
        file.truncate()


def test_uv_15700_the_cache_and_a_second_environment_are_left_alone(uv: Uv, place: MakePlace, tmp_path: Path) -> None:
    mine = uv.install(uv.environment(tmp_path / "mine"))
    other = uv.install(uv.environment(tmp_path / "other"))
    assert all((mine / path).samefile(other / path) for path in SHARED), "uv did not link: this test would show nothing"
    before = {folder: inodes(folder) for folder in (uv.cache, other)}
    here = place(mine)
    pristine = here.footprint()

    report = here.apply(Tier.STATIC)
    assert report.exit_code == 0, report.diagnostics
    assert here.status() == "applied"
    assert all((mine / path).stat().st_nlink == 1 for path in (*CHANGED, ADDED, RECORD))
    assert {folder: inodes(folder) for folder in before} == before
    assert place(other).status() == "clean"

    assert here.revert().exit_code == 0
    assert here.footprint() == pristine
    assert {folder: inodes(folder) for folder in before} == before


def test_uv_10896_installed_again_from_the_cache_the_package_is_pristine(
    uv: Uv, place: MakePlace, tmp_path: Path
) -> None:
    python = uv.environment(tmp_path / "mine")
    here = place(uv.install(python))
    here.apply()
    uv("pip", "uninstall", "--python", python, "tiny")
    assert not (here.site / "tiny").exists()
    uv.install(python)
    assert {path: here.read(path) for path in MODULES} == {path: text.encode() for path, text in MODULES.items()}
    assert not (here.site / ADDED).exists() and ADDED.encode() not in here.read(RECORD)
    assert here.status() == "wiped"  # the state knows that a patch was here
    assert here.apply(Tier.STATIC).exit_code == 0 and here.status() == "applied"
    assert here.revert().exit_code == 0 and here.status() == "clean"


def test_uv_10579_a_cache_that_was_poisoned_earlier_is_noticed(uv: Uv, place: MakePlace, tmp_path: Path) -> None:
    """Another tool edits the shared inode; every later installation brings the edit. RECORD disagrees with it."""
    edit_in_place(uv.install(uv.environment(tmp_path / "first")) / CHANGED[0], b"'old'", b"'bad'")
    python = uv.environment(tmp_path / "second")
    here = place(uv.install(python))
    assert b"'bad'" in here.read(CHANGED[0]), "the cache is not poisoned: this test would show nothing"
    before = inodes(here.site)

    applied, looked = ended(here.apply), ended(here.doctor)
    for found in (applied, looked):
        (said,) = [text for code, text in found.diagnostics if code == FileStatus.FOREIGN.value]
        assert CHANGED[0] in said and "package cache" in said and "uv cache clean tiny" in said
    assert applied.code == 4
    remedies = {item.remedy for item in (*here.doctor().diagnostics, *here.apply().diagnostics)}
    assert not [remedy for remedy in remedies if "--force-reinstall" in remedy]  # it would bring the edit back
    assert inodes(here.site) == before

    uv.install(python, "tiny==1.0", "--reinstall", "--no-deps")
    assert b"'bad'" in here.read(CHANGED[0])  # from the cache, the edit comes back
    uv("cache", "clean", "tiny")
    uv.install(python, "tiny==1.0", "--reinstall", "--no-deps")
    assert ended(here.doctor).codes.count("foreign") == 0 and here.apply(Tier.STATIC).exit_code == 0
    assert here.read(CHANGED[0]) == MODULES[CHANGED[0]].replace("old", "new").encode()


def test_unsloth_8412_voicestudio_392_each_file_is_looked_at_by_itself(
    uv: Uv, place: MakePlace, tmp_path: Path
) -> None:
    """A cache that was moved to another file system makes copies; one environment may hold both kinds."""
    copied = place(uv.install(uv.environment(tmp_path / "copied"), mode="copy"))
    assert all((copied.site / path).stat().st_nlink == 1 for path in CHANGED)
    assert ended(copied.doctor).codes.count("linked") == 0
    mixed = place(uv.install(uv.environment(tmp_path / "mixed")))
    own = mixed.site / CHANGED[0]
    data = own.read_bytes()
    own.unlink()
    own.write_bytes(data)
    (said,) = [text for code, text in ended(mixed.doctor).diagnostics if code == "linked"]
    assert said.startswith(f"{len(SHARED) - 1} of the files to change have other hard links")
    before = inodes(uv.cache)
    for here in (copied, mixed):
        pristine = here.footprint()
        assert here.apply(Tier.STATIC).exit_code == 0
        assert here.revert().exit_code == 0
        assert here.footprint() == pristine
    assert inodes(uv.cache) == before


def test_nemo_platform_1056_files_that_are_links_to_one_copy_are_refused(
    uv: Uv, place: MakePlace, tmp_path: Path
) -> None:
    """uv's ``--link-mode symlink``: all environments share one physical file. The remedy that is named helps."""
    python = uv.environment(tmp_path / "mine")
    here = place(uv.install(python, mode="symlink"))
    assert (here.site / CHANGED[0]).is_symlink()
    before = (inodes(uv.cache), os.readlink(here.site / CHANGED[0]), sorted(os.listdir(here.site)))
    assert here.status() == "clean"  # reading is fine
    refused, looked = ended(here.apply), ended(here.doctor)
    assert (refused.code, looked.code) == (6, 6)
    assert "symbolic link" in refused.text and "--link-mode copy" in refused.text
    assert [text for code, text in looked.diagnostics if code == "linked" and "--link-mode copy" in text]
    assert (inodes(uv.cache), os.readlink(here.site / CHANGED[0]), sorted(os.listdir(here.site))) == before
    uv.install(python, "tiny==1.0", "--reinstall", "--no-deps", mode="copy")
    assert here.apply(Tier.STATIC).exit_code == 0 and here.status() == "applied"


def test_what_runs_in_the_patched_environment_is_the_patch_and_in_the_other_one_is_not(
    uv: Uv, place: MakePlace, tmp_path: Path
) -> None:
    mine, other = uv.environment(tmp_path / "mine"), uv.environment(tmp_path / "other")
    here = place(uv.install(mine), root="", python=str(mine))
    uv.install(other)
    assert here.apply(Tier.IMPORT).exit_code == 0
    program = "import json, tiny.alpha; print(json.dumps(tiny.alpha.value))"
    ran = [subprocess.check_output([python, "-c", program], cwd=tmp_path) for python in (mine, other)]
    assert [json.loads(line) for line in ran] == ["new", "old"]


@pytest.mark.parametrize("path", [CHANGED[1], RECORD])
def test_one_file_that_is_a_link_is_refused_and_nothing_else_is_written(
    uv: Uv, place: MakePlace, tmp_path: Path, path: str
) -> None:
    """ruff #26580: a rename would replace the link silently."""
    here = place(uv.install(uv.environment(tmp_path / "mine"), mode="copy"))
    (here.site / path).rename(tmp_path / "elsewhere")
    (here.site / path).symlink_to(tmp_path / "elsewhere")
    before = here.footprint()
    refused = ended(here.apply)
    assert refused.code == 6 and path in refused.text and "symbolic link" in refused.text
    assert here.footprint() == before and (here.site / path).is_symlink()
