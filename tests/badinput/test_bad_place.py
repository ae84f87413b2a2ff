"""There is nothing to patch there, or it is not ours to patch."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bad_site import APPLY, DFLASH_INFO, SERVER_ARGS, STATE, Site, appending, refused, untouched

from ddtree_patcher.model import ExitCode

Run = Callable[..., object]
COMMANDS = ("apply", "diff", "doctor", "plan", "revert", "status", "verify")
METADATA = "no sglang-*.dist-info beside sglang/"


@pytest.fixture
def interpreter(tmp_path: Path) -> Callable[..., Path]:
    """``interpreter(**facts)``: a program that answers as an interpreter with these facts would."""

    def make(**facts: object) -> Path:
        known = {
            "executable": sys.executable,
            "version": "3.11.7",
            "prefix": "/usr",
            "base_prefix": "/usr",
            "pycache_prefix": None,
            "stdlib": str(tmp_path / "stdlib"),
            "sites": [],
            "found": False,
            "origin": None,
            "places": [],
        }
        program = tmp_path / "python"
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps({**known, **facts})}\nEND\n")
        program.chmod(0o755)
        return program

    return make


@pytest.mark.parametrize("command", COMMANDS)
def test_an_interpreter_without_sglang(run_here, interpreter, command):
    refused(run_here("--python", interpreter(), command), ExitCode.ENVIRONMENT_REFUSED, "environment_refused", "sglang")


@pytest.mark.parametrize("command", ["plan", "apply"])
def test_an_sglang_without_dflash(site, run, command):
    old = site("0.5.9")
    with untouched(old.folder):
        first = refused(
            run(old, command), ExitCode.ENVIRONMENT_REFUSED, "environment_refused", "sglang 0.5.9", "no DFLASH"
        )
    assert "0.5.11" in first["remedy"]


def test_an_sglang_without_dflash_is_described(site, run):
    old = site("0.5.9")
    with untouched(old.folder):
        assert run(old, "status").json["outcome"] == "clean"
        assert run(old, "doctor").exit_code == 0
        assert run(old, "diff").json["snapshot"]["chosen"] == "nearest"
        assert run(old, "revert").json["outcome"] == "clean"
        refused(run(old, "verify"), ExitCode.VERIFICATION_FAILED, "clean", "nothing is applied")


@pytest.mark.parametrize(
    ("root", "says"),
    [
        ("a-file", "is not a folder"),
        ("empty", "it is empty"),
        ("other", "it holds torch"),
        ("other/torch", "it holds __init__.py"),
        ("sglang", "has no sglang/__init__.py"),
        ("missing", "does not exist"),
    ],
)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_root_that_is_no_sglang(run_here, tmp_path, root, says, command):
    for folder in ("empty", "other/torch", "sglang"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "other/torch/__init__.py").touch()
    (tmp_path / "a-file").touch()
    with untouched(tmp_path):
        first = refused(run_here("--root", tmp_path / root, command), ExitCode.USAGE, "usage", root, says)
    assert "site-packages" in first["remedy"]


def _no_dist_info(site: Site) -> None:
    (site.folder / site.dist_info).rename(site.folder / "metadata")


PROOFS: dict[str, tuple[Callable[[Site], object], tuple[str, ...]]] = {
    "no dist-info": (_no_dist_info, (METADATA,)),
    "no RECORD": (lambda site: site.edit(site.record, None), ("no RECORD", "sglang-0.5.11.dist-info")),
    "empty RECORD": (lambda site: site.edit(site.record, b""), ("RECORD", "an empty one")),
    "RECORD not UTF-8": (lambda site: site.edit(site.record, b"\xff\xfe,x,1\n"), ("not a RECORD file", "RECORD")),
    "RECORD of two columns": (lambda site: site.edit(site.record, b"a,b\nc\n"), ("damaged", "line 1: a,b", "line 2")),
    "RECORD with one row cut off": (
        lambda site: site.edit(site.record, appending(b"sglang/cut.py,sha2")),
        ("damaged", "sglang/cut.py,sha2"),
    ),
    "RECORD with a bad size": (lambda site: site.edit(site.record, b"sglang/x.py,sha256=a,big\n"), ("damaged", "big")),
    "direct_url.json not JSON": (
        lambda site: (site.folder / site.dist_info / "direct_url.json").write_text("{"),
        ("direct_url.json", "is not JSON"),
    ),
    "two dist-infos": (
        lambda site: (site.folder / "sglang-0.5.10.dist-info").mkdir(),
        ("2 dist-info folders", "sglang-0.5.10.dist-info", "sglang-0.5.11.dist-info"),
    ),
}


@pytest.mark.parametrize("case", PROOFS)
def test_nothing_proves_what_is_pristine(site, run, case):
    here = site()
    spoil, says = PROOFS[case]
    spoil(here)
    with untouched(here.folder):
        for command in ("plan", "apply", "doctor"):
            refused(run(here, command), ExitCode.ENVIRONMENT_REFUSED, "environment_refused", *says)


@pytest.mark.parametrize("case", ["no dist-info", "no RECORD"])
def test_what_has_no_proof_can_be_looked_at(site, run, case):
    here = site()
    PROOFS[case][0](here)
    with untouched(here.folder):
        assert run(here, "status").json["outcome"] == "clean"
        assert run(here, "diff").exit_code == 0
        assert run(here, "revert").json["outcome"] == "clean"


VCS = {"url": "https://example.org/sglang.git", "vcs_info": {"vcs": "git", "commit_id": "0" * 40}}


def test_a_vcs_installation_is_patched_only_when_allowed(site, run):
    here = site()
    (here.folder / here.dist_info / "direct_url.json").write_text(json.dumps(VCS))
    with untouched(here.folder):
        for command in ("plan", "apply", "doctor", "revert"):
            first = refused(run(here, command), ExitCode.ENVIRONMENT_REFUSED, "environment_refused", VCS["url"])
            assert "--allow-editable" in first["remedy"]
        assert run(here, "status").json["installation"]["kind"] == "vcs"
    assert run(here, *APPLY, shared=("--allow-editable",)).exit_code == 0
    refused(run(here, "revert"), ExitCode.ENVIRONMENT_REFUSED, "environment_refused", "VCS installation")
    assert run(here, "revert", shared=("--allow-editable",)).exit_code == 0


@pytest.mark.parametrize("value", [[1], {"dir_info": []}, {"dir_info": {"editable": False}}, {"url": 3}])
def test_an_odd_direct_url_is_not_taken_for_an_editable_one(site, run, value):
    here = site()
    (here.folder / here.dist_info / "direct_url.json").write_text(json.dumps(value))
    assert run(here, "plan").exit_code == 0


def test_a_source_tree_is_patched_only_when_allowed_and_as_it_is(site, run_here, interpreter, tmp_path):
    """``pip install -e``: the metadata lie in site-packages, and RECORD there knows none of the sources."""
    source = site(name="checkout/python")
    packages = tmp_path / "site-packages"
    info = packages / source.dist_info
    packages.mkdir()
    (source.folder / source.dist_info).rename(info)
    (info / "RECORD").unlink()
    (info / "RECORD").write_text("__editable__.sglang-0.5.11.pth,,\n")
    url = (tmp_path / "checkout").as_uri()
    (info / "direct_url.json").write_text(json.dumps({"url": url, "dir_info": {"editable": True}}))
    python = interpreter(found=True, places=[str(source.folder / "sglang")], sites=[str(packages)])
    before = source.bytes_of(SERVER_ARGS)

    def run(*args):
        return run_here("--python", python, *args)

    with untouched(source.folder, packages):
        for command in ("plan", "apply", "doctor", "revert"):
            first = refused(run(command), ExitCode.ENVIRONMENT_REFUSED, "environment_refused", "editable", url)
            assert "--allow-editable" in first["remedy"]
        assert run("status").json["installation"]["kind"] == "editable"
        first = refused(run("--allow-editable", *APPLY), ExitCode.CONFLICT, "unknown_base", "RECORD has no digest")
        assert "--allow-drift" in first["remedy"]
    assert run("--allow-editable", *APPLY, "--allow-drift").exit_code == 0
    assert run("--allow-editable", "status").json["outcome"] == "applied"
    assert run("--allow-editable", "revert").exit_code == 0
    assert source.bytes_of(SERVER_ARGS) == before
    assert not (source.folder / STATE).exists()


def test_an_editable_installation_elsewhere_does_not_vouch_for_a_folder(site, run_here, interpreter, tmp_path):
    here, packages = site(), tmp_path / "site-packages"
    (here.folder / here.dist_info).rename(here.folder / "metadata")
    info = packages / "sglang-0.5.11.dist-info"
    info.mkdir(parents=True)
    (info / "direct_url.json").write_text(json.dumps({"url": "file:///elsewhere", "dir_info": {"editable": True}}))
    python = interpreter(sites=[str(packages)])
    result = run_here("--python", python, "--root", here.folder, "--allow-editable", "plan")
    refused(result, ExitCode.ENVIRONMENT_REFUSED, "environment_refused", METADATA)


@pytest.mark.parametrize("command", ["plan", "apply", "doctor", "revert"])
def test_an_externally_managed_interpreter_is_left_alone(site, run, interpreter, tmp_path, command):
    """PEP 668."""
    here = site()
    (tmp_path / "stdlib").mkdir()
    (tmp_path / "stdlib/EXTERNALLY-MANAGED").write_text("[externally-managed]\nError=Use apt.\n")
    managed = ("--python", interpreter(sites=[str(here.folder)]))
    with untouched(here.folder):
        result = run(here, command, shared=managed)
        first = refused(result, ExitCode.ENVIRONMENT_REFUSED, "environment_refused", "PEP 668", "Use apt.")
    assert "--break-system-packages" in first["remedy"]


def test_an_externally_managed_interpreter_is_patched_when_told_to(site, run, interpreter, tmp_path):
    here = site()
    (tmp_path / "stdlib").mkdir()
    (tmp_path / "stdlib/EXTERNALLY-MANAGED").write_text("[externally-managed]\n")
    told = ("--python", interpreter(sites=[str(here.folder)]), "--break-system-packages")
    assert run(here, *APPLY, shared=told).exit_code == 0
    assert run(here, "revert", shared=told).exit_code == 0


def test_a_folder_that_is_not_the_managed_interpreters_own_may_be_patched(site, run, interpreter, tmp_path):
    here = site()
    (tmp_path / "stdlib").mkdir()
    (tmp_path / "stdlib/EXTERNALLY-MANAGED").write_text("[externally-managed]\n")
    assert run(here, "plan", shared=("--python", interpreter(sites=["/usr/lib/python3/dist-packages"]))).exit_code == 0


@pytest.mark.parametrize(
    ("python", "says"),
    [
        ("/nonexistent/python", "No such file"),
        ("no-such-program", "No such file"),
        (os.sep, "Permission denied"),
        ("/bin/true", "not a working Python"),
        ("/bin/false", "not a working Python"),
        ("/bin/ls", "not a working Python"),
    ],
)
def test_a_python_that_is_none(bench, run, python, says):
    here = bench()
    with untouched(here.folder):
        for command in ("status", "apply"):
            result = run(here, command, shared=("--python", python))
            first = refused(result, ExitCode.USAGE, "usage", f"--python {python}", says)
            assert "interpreter" in first["remedy"]


def test_a_deleted_file_is_not_taken_for_an_sglang_without_dflash(site, run):
    here = site()
    here.edit(DFLASH_INFO, None)
    with untouched(here.folder):
        first = refused(run(here, *APPLY), ExitCode.CONFLICT, "missing", DFLASH_INFO, "was deleted")
    assert "Reinstall" in first["remedy"]


def test_an_edit_that_no_step_looks_at_is_found_before_anything_is_written(site, run):
    here = site()
    here.edit("sglang/version.py", appending(b"\n# local\n"))
    with untouched(here.folder):
        result = run(here, *APPLY)
        first = refused(result, ExitCode.VERIFICATION_FAILED, "verification_failed", "sglang/version.py", "RECORD")
    assert "--allow-drift" in first["remedy"]
