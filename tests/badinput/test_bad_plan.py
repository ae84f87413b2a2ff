"""Plan files, selections of steps and snapshots that cannot be used."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bad_site import APPLY, DFLASH_WORKER, SERVER_ARGS, SPEC_INFO, appending, refused, untouched

import sglang_releases
from ddtree_patcher.model import ExitCode

Plan = dict[str, Any]
ZEROS = "0" * 64


@pytest.fixture
def saved(bench, run, tmp_path) -> Callable[..., tuple[Any, Path]]:
    """``saved(version, *options)``: a site and the plan that was made for it."""

    def make(version: str = "0.5.11", *options: str) -> tuple[Any, Path]:
        here, plan = bench(version), tmp_path / "plan.json"
        assert run(here, "plan", "--out", plan, *options).exit_code == 0
        return here, plan

    return make


def _with(**values: object) -> Callable[[Plan], object]:
    return lambda plan: {**plan, **values}


def _of_file(path: str, **values: object) -> Callable[[Plan], object]:
    return lambda plan: {**plan, "files": {**plan["files"], path: {**plan["files"].get(path, {}), **values}}}


UNREADABLE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "not a plan, or only a part of one"),
    "not JSON": (b"hello\n", "not a plan"),
    "not UTF-8": (b"\xff\0", "not a plan"),
    "null": (b"null", "no JSON object"),
    "a list": (b"[]", "no JSON object"),
    "a number": (b"3", "no JSON object"),
    "an empty object": (b"{}", "its schema is None"),
    "nested without end": (b"[" * 200_000, "not a plan"),
    "oversized": (b" " * (4 * 1024 * 1024 + 1), "too large"),
}
FOREIGN: dict[str, tuple[Callable[[Plan], object], str]] = {
    "another tool's": (_with(schema="terraform/1"), "its schema is 'terraform/1'"),
    "without steps": (lambda plan: {name: plan[name] for name in plan if name != "selected"}, "'selected'"),
    "files as a list": (_with(files=[]), "not a plan"),
    "a file without a digest": (_with(files={SPEC_INFO: {}}), "'current'"),
    "a file elsewhere": (_of_file("../../etc/passwd", current="", desired=ZEROS), "leaves the tree"),
    "a file at the root": (_of_file("/etc/passwd", current="", desired=ZEROS), "leaves the tree"),
    "a base elsewhere": (_with(read={"../../etc/passwd": ZEROS}), "leaves the tree"),
    "a file with an escape sequence": (_of_file("sglang/\x1b[2J.py", current="", desired=ZEROS), "control characters"),
    "a number for a digest": (_of_file(SPEC_INFO, current="", desired=7), "is no digest"),
    "a path for a digest": (_with(read={SPEC_INFO: "/etc/passwd"}), "is no digest"),
    "a patchset of numbers": (_with(patchset={"id": 1, "version": 2, "digest": 3}), "no line of text"),
    "a patchset with an escape sequence": (
        _with(patchset={"id": "\x1b[2J", "version": "", "digest": ""}),
        "no line of text",
    ),
    "more about the patchset": (_with(patchset={"more": 1}), "not a plan"),
}
STALE: dict[str, tuple[Callable[[Plan], object], str]] = {
    "another patchset": (
        _with(patchset={"id": "other", "version": "9", "digest": ZEROS}, selected=["nowhere"]),
        "other 9 (000000000000)",
    ),
    "an older patchset": (lambda plan: {**plan, "patchset": {**plan["patchset"], "version": "0.0.1"}}, "0.0.1"),
    "another outcome": (_of_file(SERVER_ARGS, desired=ZEROS), f"plans another content of {SERVER_ARGS}"),
    "a file more": (_of_file("sglang/more.py", current="", desired=ZEROS), "sglang/more.py"),
    "a file less": (
        lambda plan: {**plan, "files": {name: row for name, row in plan["files"].items() if name != SPEC_INFO}},
        SPEC_INFO,
    ),
    "fewer steps": (_with(selected=["enum"]), "sglang/"),
    "another base": (lambda plan: {**plan, "read": {**plan["read"], SPEC_INFO: ZEROS}}, SPEC_INFO),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_is_no_plan(bench, run, tmp_path, case):
    here, plan = bench(), tmp_path / "plan.json"
    data, says = UNREADABLE[case]
    plan.write_bytes(data)
    with untouched(here.folder):
        first = refused(run(here, *APPLY, plan), ExitCode.USAGE, "usage", str(plan), says)
    assert "ddtree-patch plan --out" in first["remedy"]


def test_a_plan_cut_off_anywhere(saved, run):
    here, plan = saved()
    whole = plan.read_bytes().rstrip()
    with untouched(here.folder):
        for length in range(0, len(whole), len(whole) // 12):
            plan.write_bytes(whole[:length])
            refused(run(here, *APPLY, plan), ExitCode.USAGE, "usage", str(plan), "not a plan, or only a part of one")


@pytest.mark.parametrize("case", FOREIGN)
def test_a_plan_of_another_make(saved, run, case):
    here, plan = saved()
    change, says = FOREIGN[case]
    plan.write_text(json.dumps(change(json.loads(plan.read_bytes()))))
    with untouched(here.folder):
        refused(run(here, *APPLY, plan), ExitCode.USAGE, "usage", str(plan), says)


@pytest.mark.parametrize("case", STALE)
def test_a_plan_that_says_something_else(saved, run, case):
    here, plan = saved()
    change, says = STALE[case]
    plan.write_text(json.dumps(change(json.loads(plan.read_bytes()))))
    with untouched(here.folder):
        first = refused(run(here, *APPLY, plan), ExitCode.CONFLICT, "stale_plan", str(plan), says)
    assert "ddtree-patch plan --out" in first["remedy"]


@pytest.mark.parametrize("proved", [False, True])
@pytest.mark.parametrize("target", [SERVER_ARGS, DFLASH_WORKER])
def test_a_plan_names_the_file_that_has_changed(saved, run, target, proved):
    """Whether or not RECORD knows of the change: the plan is bound to the bytes that it was made from."""
    here, plan = saved()
    here.edit(target, appending(b"\n# later\n"))
    if proved:
        here.bless(target)
    with untouched(here.folder):
        refused(run(here, *APPLY, plan), ExitCode.CONFLICT, "stale_plan", target, str(plan))


def test_a_plan_for_another_release(saved, bench, run):
    _, plan = saved()
    other = bench("0.5.12")
    with untouched(other.folder):
        refused(run(other, *APPLY, plan), ExitCode.CONFLICT, "stale_plan", "sglang/", str(plan))


def test_a_plan_does_what_it_says_and_then_nothing_more(saved, site, run):
    _, plan = saved()
    here = site()
    assert run(here, *APPLY, plan).exit_code == 0
    with untouched(here.folder):
        assert set(run(here, *APPLY, plan).outcomes.values()) == {"already", "not_needed"}


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_a_plan_that_cannot_be_read(bench, run, tmp_path, name):
    here = bench()
    with untouched(here.folder):
        first = refused(run(here, *APPLY, tmp_path / name), ExitCode.USAGE, "usage", str(tmp_path / name))
    assert "ddtree-patch plan --out" in first["remedy"]


@pytest.mark.parametrize("option", [("--step", "enum"), ("--through", "enum"), ("--allow-drift",)])
def test_a_plan_has_its_own_steps(saved, run, option):
    here, plan = saved()
    with untouched(here.folder):
        refused(run(here, *APPLY, plan, *option), ExitCode.USAGE, "usage", "a PLAN has its own steps", option[0])


@pytest.mark.parametrize("place", ["missing/plan.json", "."])
def test_a_place_where_no_plan_can_be_saved(bench, run, tmp_path, place):
    here = bench()
    with untouched(here.folder):
        refused(run(here, "plan", "--out", tmp_path / place), ExitCode.USAGE, "usage", str(tmp_path / place))


def test_a_conflict_saves_no_plan(site, run, tmp_path):
    here = site()
    here.edit(SPEC_INFO, appending(b"\n"))
    refused(run(here, "plan", "--out", tmp_path / "plan.json"), ExitCode.CONFLICT, "foreign", SPEC_INFO)
    assert not (tmp_path / "plan.json").exists()


# --- selections --------------------------------------------------------------------------------------------------

STEPS = ", ".join(sglang_releases.STEPS)
SELECTIONS = {
    "unknown": (("--step", "nowhere"), "there is no step 'nowhere'", STEPS),
    "through unknown": (("--through", "nowhere"), "there is no step 'nowhere'", STEPS),
    "empty": (("--step", ""), "there is no step ''", STEPS),
    "without any requirement": (
        ("--step", "worker-branch"),
        "worker-branch requires worker-import requires verify-input requires runtime requires flags requires enum",
        "--through worker-branch",
    ),
    "with a gap": (
        ("--step", "enum", "--step", "validation"),
        "validation requires flags",
        "--through validation",
    ),
    "the deepest first": (
        ("--step", "validation", "--step", "flags"),
        "flags requires enum",
        "--through flags",
    ),
}


@pytest.mark.parametrize("case", SELECTIONS)
@pytest.mark.parametrize("command", [("plan",), APPLY])
def test_a_selection_of_steps_that_cannot_be(bench, run, case, command):
    here = bench()
    options, says, remedy = SELECTIONS[case]
    with untouched(here.folder):
        first = refused(run(here, *command, *options), ExitCode.USAGE, "usage", says)
    assert remedy in first["remedy"]


# --- snapshots ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["9.9.9", "../0.5.11", "0.5.11.json", "", "AUTO"])
def test_a_snapshot_that_is_not_there(bench, run, run_here, name):
    here = bench()
    with untouched(here.folder):
        first = refused(
            run(here, "diff", "--snapshot", name), ExitCode.USAGE, "usage", f"there is no snapshot {name!r}"
        )
    assert "0.5.11, 0.5.12" in first["remedy"]
    refused(run_here("snapshot", "show", name), ExitCode.USAGE, "usage", f"there is no snapshot {name!r}")


CORRUPT = {
    "empty": b"",
    "not JSON": b"hello",
    "not UTF-8": b"\xff",
    "a list": b"[1]",
    "no schema": b"{}",
    "another schema": b'{"schema": "other/1"}',
    "a part": b'{"schema": "ddtree-patch.snapshot/1", "distribution": "sglang"}',
    "nested without end": b"[" * 200_000,
    "a way out": json.dumps(
        {"schema": "ddtree-patch.snapshot/1", "distribution": "x", "version": "1", "files": {"../../x": "absent"}}
    ).encode(),
}


@pytest.mark.parametrize("case", CORRUPT)
def test_a_snapshot_that_is_corrupt(bench, run, run_here, tmp_path, case):
    here, file = bench(), tmp_path / "snapshot.json"
    file.write_bytes(CORRUPT[case])
    with untouched(here.folder):
        first = refused(run(here, "diff", "--snapshot", file), ExitCode.USAGE, "usage", str(file), "not a usable")
    assert "snapshot capture" in first["remedy"]
    refused(run_here("snapshot", "show", file), ExitCode.USAGE, "usage", str(file))


@pytest.mark.parametrize("data", [b"", b"hello", b"PK\x05\x06" + bytes(18)])
def test_a_wheel_that_is_none(run_here, tmp_path, data):
    wheel, out = tmp_path / "sglang-0.5.11-py3-none-any.whl", tmp_path / "snapshot.json"
    wheel.write_bytes(data)
    first = refused(run_here("snapshot", "capture", wheel, "--out", out), ExitCode.USAGE, "usage", str(wheel))
    assert ".whl" in first["remedy"]
    assert not out.exists()
