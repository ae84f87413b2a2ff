"""Commands at the wrong moment, an installation that was replaced beneath the patch, and folders that refuse."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bad_site import (
    APPLY,
    DDTREE_ARGS,
    SERVER_ARGS,
    STATE,
    Site,
    appending,
    changed,
    changed_files,
    errors,
    listing,
    refused,
    untouched,
)

from ddtree_patcher.model import ExitCode
from powerless import drop_capabilities

VERSION, LATER = "0.5.11", "0.5.13.post1"


# --- twice, and too early ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["0.5.11", LATER])
def test_applying_twice_writes_nothing(site, run, version):
    here = site(version)
    assert run(here, *APPLY).exit_code == 0
    with untouched(here.folder):
        again = run(here, *APPLY)
    assert again.exit_code == 0
    assert set(again.outcomes.values()) <= {"already", "not_needed"}
    assert {item["state"] for item in again.json["files"]} == {"patched"}


@pytest.mark.parametrize("version", ["0.5.11", LATER])
def test_reverting_twice_writes_nothing(site, run, version):
    here = site(version)
    before = listing(here.folder)
    assert run(here, *APPLY).exit_code == 0
    assert run(here, "revert").exit_code == 0
    assert changed_files(before, here.folder) == []
    with untouched(here.folder):
        again = run(here, "revert")
    assert (again.exit_code, again.json["outcome"], again.codes) == (0, "clean", ["clean"])


def test_reverting_without_applying_writes_nothing(site, run):
    here = site()
    with untouched(here.folder):
        for options in ((), ("--discard-edits",)):
            result = run(here, "revert", *options)
            assert (result.exit_code, result.json["outcome"]) == (0, "clean")
            assert "nothing is applied" in result.json["diagnostics"][0]["summary"]


def test_verifying_without_applying(site, run):
    here = site()
    with untouched(here.folder):
        first = refused(run(here, "verify"), ExitCode.VERIFICATION_FAILED, "clean", "nothing is applied")
    assert "ddtree-patch apply" in first["remedy"]


# --- reinstalled, upgraded ---------------------------------------------------------------------------------------


@pytest.fixture
def wiped(site, run, shared_tree) -> Callable[..., tuple[Site, dict]]:
    """``wiped(version)``: 0.5.11 patched, and another wheel laid over it; with the listing of that wheel's files."""

    def make(version: str = "0.5.11") -> tuple[Site, dict]:
        here = site()
        assert run(here, *APPLY).exit_code == 0
        here.lay_over(shared_tree(version))
        return here, listing(shared_tree(version))

    return make


@pytest.mark.parametrize("removed", [False, True])
def test_reinstalled_over_the_patch(wiped, run, removed):
    """pip removes the added file with the old installation, because RECORD has its row; other installers do not."""
    here, wheel = wiped()
    if removed:
        here.edit(DDTREE_ARGS, None)
    with untouched(here.folder):
        status = run(here, "status", "--check")
        assert (status.exit_code, status.json["outcome"]) == (3, "wiped")
        assert "ddtree-patch apply" in status.json["diagnostics"][0]["remedy"]
        gone = "the patch is gone from this file"
        refused(run(here, "verify", "--tier", "static"), ExitCode.VERIFICATION_FAILED, "wiped", gone)
        assert run(here, "plan").exit_code == 0
    again = run(here, *APPLY)
    assert again.exit_code == 0
    # The step that only adds files finds them where they were.
    assert {step for step, outcome in again.outcomes.items() if outcome not in ("applied", "not_needed")} == {"runtime"}
    assert run(here, "status", "--check").json["outcome"] == "applied"
    assert run(here, "revert").exit_code == 0
    assert changed_files(wheel, here.folder) == []


@pytest.mark.parametrize("removed", [False, True])
@pytest.mark.parametrize("version", ["0.5.11", "0.5.12", "0.5.9"])
def test_reverting_after_a_reinstallation_leaves_the_new_files(wiped, run, version, removed):
    here, wheel = wiped(version)
    if removed:  # as pip does with the files of the old installation
        for name in changed_files(wheel, here.folder):
            if not name.startswith(STATE):
                here.edit(name, None)
    result = run(here, "revert")
    assert (result.exit_code, result.json["outcome"]) == (0, "clean")
    now = listing(here.folder)
    assert [name for name, facts in wheel.items() if facts[2] and now[name] != facts] == []
    assert DDTREE_ARGS not in now and STATE not in now
    for item in result.json["files"]:  # what the report says of a file is so
        path = here.folder / item["path"]
        assert path.exists() == (item["state"] == "pristine")
        assert item["current_sha256"] == item["pristine_sha256"] or item["added"]
    with untouched(here.folder):
        assert run(here, "status").json["outcome"] == "clean"


@pytest.mark.parametrize("version", ["0.5.12", LATER])
def test_upgraded_over_the_patch(wiped, run, version):
    here, wheel = wiped(version)
    with untouched(here.folder):
        status = run(here, "status")
        assert (status.json["outcome"], status.json["installation"]["version"]) == ("wiped", version)
        assert run(here, "plan").exit_code == 0
    assert run(here, *APPLY).exit_code == 0
    assert run(here, "status", "--check").json["outcome"] == "applied"
    assert run(here, "verify", "--tier", "static").exit_code == 0
    assert run(here, "revert").exit_code == 0
    now = listing(here.folder)
    assert [name for name, facts in wheel.items() if facts[2] and now[name] != facts] == []
    assert DDTREE_ARGS not in now and STATE not in now


def test_downgraded_to_an_sglang_without_dflash(wiped, run):
    here, _ = wiped("0.5.9")
    shutil.rmtree(here.folder / "sglang/srt/speculative")
    shutil.copytree(here.folder / "sglang/srt/utils", here.folder / "sglang/srt/speculative")
    with untouched(here.folder):
        result = run(here, *APPLY)
    assert result.exit_code in (ExitCode.ENVIRONMENT_REFUSED, ExitCode.CONFLICT)
    assert errors(result)[0]["remedy"]


def test_record_rewritten_between_two_applications(site, run):
    """RECORD as another tool left it is what a revert gives back, without our rows."""
    here = site()
    assert run(here, *APPLY, "--through", "flags").exit_code == 0
    here.edit(here.record, appending(b"sglang/more.txt,,\n"))
    assert run(here, *APPLY).exit_code == 0
    assert run(here, "revert").exit_code == 0
    record = here.bytes_of(here.record)
    assert record.endswith(b"sglang/more.txt,,\n")
    assert DDTREE_ARGS.encode() not in record


# --- a state folder that is damaged ------------------------------------------------------------------------------

DAMAGED = {
    "state cut off": ("state.json", b'{"schema": "ddtree-patch.state/1"', "is damaged"),
    "state of another make": ("state.json", b"{}", "is not a ddtree-patch.state/1"),
    "state without end": ("state.json", b"[" * 200_000, "is damaged"),
    "state without files": ("state.json", b'{"schema": "ddtree-patch.state/1"}', "is damaged"),
    "journal cut off": ("journal.json", b"{", "is damaged"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_state_folder(site, run, case):
    here = site()
    name, data, says = DAMAGED[case]
    assert run(here, *APPLY).exit_code == 0
    here.edit(f"{STATE}/{name}", data)
    with untouched(here.folder):
        for command in (("status",), APPLY, ("revert",)):
            first = refused(run(here, *command), ExitCode.ERROR, "error", name, says)
            assert "Reinstall SGLang" in first["remedy"]


@pytest.mark.parametrize("damage", ["gone", "changed"])
def test_lost_pristine_bytes(site, run, damage):
    here = site()
    assert run(here, *APPLY).exit_code == 0
    for path in (here.folder / STATE / "objects").iterdir():
        path.unlink()
        if damage == "changed":
            path.write_bytes(b"something else")
    with untouched(here.folder):
        first = refused(run(here, "revert"), ExitCode.ERROR, "error", STATE)
    assert "Reinstall SGLang" in first["remedy"]


def test_a_lost_state_folder(site, run, wheel):
    """Also row 37: what looks like the patch is not taken for it. The wheel says what is pristine, and what is ours."""
    here = site()
    before = listing(here.folder)
    assert run(here, *APPLY).exit_code == 0
    shutil.rmtree(here.folder / STATE)
    with untouched(here.folder):
        assert run(here, "status").json["outcome"] == "drifted"
        first = refused(run(here, *APPLY), ExitCode.CONFLICT, "foreign", "sglang/srt/")
        assert "--from-wheel" in first["remedy"]
        first = refused(run(here, "revert"), ExitCode.CONFLICT, "state_lost", "is gone")
        assert "--from-wheel" in first["remedy"]
        refused(run(here, "revert", "--from-wheel", wheel(LATER)), ExitCode.USAGE, "usage", f"not of {VERSION}")
    assert run(here, "revert", "--from-wheel", wheel(VERSION)).json["outcome"] == "clean"
    assert {name: facts[2] for name, facts in listing(here.folder).items()} == {
        name: facts[2] for name, facts in before.items()
    }


def test_a_file_that_is_a_link_elsewhere(site, run, tmp_path):
    """uv --link-mode symlink: what is behind the link belongs to the cache and to every other environment."""
    here, cache = site(), tmp_path / "cache.py"
    (here.folder / SERVER_ARGS).rename(cache)
    (here.folder / SERVER_ARGS).symlink_to(cache)
    before = listing(here.folder)
    for command in (APPLY, ("doctor",)):
        result = run(here, *command)
        first = refused(result, ExitCode.ENVIRONMENT_REFUSED, errors(result)[0]["code"], SERVER_ARGS, "symbolic link")
        assert "--link-mode copy" in first["remedy"]
    assert changed_files(before, here.folder) == []
    assert not (here.folder / STATE).exists()


# --- folders that cannot be written ------------------------------------------------------------------------------


@pytest.fixture
def powerless(run) -> Callable[..., dict]:
    """``powerless(site, *args)``: ``run`` in a child without capabilities, to whom permission bits apply (root too)."""

    class Result:
        exit_code = -1
        stdout = stderr = ""
        json: dict

    def call(site: Site, *args: object, shared: tuple[object, ...] = ()) -> Result:
        import json

        run(site, "plan")  # what is imported late is imported before the child lets go of its rights
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            drop_capabilities()
            result = run(site, *args, shared=shared)
            with os.fdopen(writer, "w") as pipe:
                pipe.write(result.stdout)
            os._exit(result.exit_code)
        os.close(writer)
        result = Result()
        with os.fdopen(reader) as pipe:
            result.stdout = pipe.read()
        result.exit_code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        result.json = json.loads(result.stdout)
        return result

    return call


@pytest.fixture
def read_only():
    """``read_only(*folders)``: nobody may write there; undone at the end, so that the folders can be removed."""
    closed: list[Path] = []

    def close(*folders: Path) -> None:
        for folder in folders:
            folder.chmod(0o555)
            closed.append(folder)

    yield close
    for folder in closed:
        folder.chmod(0o755)


def test_the_folder_of_the_state_cannot_be_written(site, powerless, read_only):
    here = site()
    read_only(here.folder)
    with untouched(here.folder):
        result = powerless(here, *APPLY)
        first = refused(result, ExitCode.ENVIRONMENT_REFUSED, "environment_refused", STATE, "Permission denied")
    assert "--state-dir" in first["remedy"]


def test_a_named_state_folder_cannot_be_written(site, powerless, read_only, tmp_path):
    here, closed = site(), tmp_path / "closed"
    closed.mkdir()
    read_only(closed)
    with untouched(here.folder, closed):
        result = powerless(here, *APPLY, shared=("--state-dir", closed / "state"))
        refused(result, ExitCode.ENVIRONMENT_REFUSED, "environment_refused", str(closed), "Permission denied")


@pytest.mark.parametrize("kind", ["beside", "named"])
def test_a_state_folder_that_is_a_file(site, run, tmp_path, kind):
    here = site()
    file = here.folder / STATE if kind == "beside" else tmp_path / "state"
    file.write_text("not a folder")
    shared = ("--state-dir", file) if kind == "named" else ()
    with untouched(tmp_path):
        result = run(here, *APPLY, shared=shared)
        refused(result, ExitCode.ENVIRONMENT_REFUSED, "environment_refused", str(file), "Not a directory")


@pytest.mark.parametrize("closed", ["sglang/srt", "sglang/srt/speculative", "dist-info"])
def test_a_tree_that_cannot_be_written(site, run, powerless, read_only, closed):
    """One folder of it is enough: what was written into the others is put back."""
    here = site()
    before = listing(here.folder)
    folder = here.folder / (here.dist_info if closed == "dist-info" else closed)
    read_only(folder)
    result = powerless(here, *APPLY)
    first = refused(result, ExitCode.ENVIRONMENT_REFUSED, "environment_refused", "cannot be written", str(folder))
    assert "Everything was put back" in first["remedy"]
    folder.chmod(0o755)
    assert changed_files(before, here.folder) == []
    assert run(here, "status").json["outcome"] == "clean"
    assert not (here.folder / STATE).exists()


def test_a_tree_that_cannot_be_written_when_reverting(site, run, powerless, read_only):
    here = site()
    assert run(here, *APPLY).exit_code == 0
    before, state = listing(here.folder), here.bytes_of(f"{STATE}/state.json")
    read_only(here.folder / "sglang/srt/speculative")
    result = powerless(here, "revert")
    refused(result, ExitCode.ENVIRONMENT_REFUSED, "environment_refused", "cannot be written")
    (here.folder / "sglang/srt/speculative").chmod(0o755)
    assert changed_files(before, here.folder) in ([], [f"{STATE}/state.json"])  # written back, as it was
    assert here.bytes_of(f"{STATE}/state.json") == state
    assert run(here, "status", "--check").json["outcome"] == "applied"
    assert run(here, "revert").exit_code == 0


@pytest.mark.parametrize("command", [("status",), ("plan",), APPLY, ("diff",)])
def test_a_file_that_cannot_be_read(site, run, powerless, command):
    here = site()
    data = here.bytes_of(SERVER_ARGS)
    here.edit(SERVER_ARGS, None)
    (here.folder / SERVER_ARGS).write_bytes(data)
    (here.folder / SERVER_ARGS).chmod(0)
    result = powerless(here, *command)
    refused(result, ExitCode.ENVIRONMENT_REFUSED, "environment_refused", SERVER_ARGS, "Permission denied")


def test_a_read_only_file_system(site, tmp_path):
    """Where mounts are allowed: such a file system refuses more than permissions do, as to remove what is not there."""
    here = site()
    tree, state = here.folder, tmp_path / "state"
    state.mkdir()
    mount = f"mount --bind {tree} {tree} && mount -o remount,bind,ro {tree}"
    inside = ["unshare", "--mount", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*inside, mount], capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount; the tests above do without")
    tool = Path(sys.executable).parent / "ddtree-patch"
    before = listing(tree)
    for options in ("", f"--state-dir {state}"):
        command = f"{mount} && exec {tool} -q --root {tree} {options} apply --verify static"
        done = subprocess.run([*inside, command], capture_output=True, text=True, check=False)
        assert done.returncode == ExitCode.ENVIRONMENT_REFUSED, done.stdout + done.stderr
        assert "Read-only file system" in done.stdout
        assert "remedy:" in done.stdout
    assert changed(before, listing(tree)) == []
    assert list(state.iterdir()) == []
