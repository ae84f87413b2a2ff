"""A release that nobody has looked at, one that is put together from several, or one that another tool has patched."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_site import (
    APPLY,
    DDTREE_WORKER,
    DFLASH_INFO,
    DFLASH_WORKER,
    DFLASH_WORKER_V2,
    ELSEWHERE,
    SCHEDULER,
    SERVER_ARGS,
    SPEC_INFO,
    Site,
    appending,
    doubling,
    errors,
    refused,
    replacing,
    untouched,
)

from ddtree_patcher.model import ExitCode

KNOWN = "0.5.13.post1"
NEWEST = "0.5.23"
FUTURE = ("0.5.24", "0.6.0")
NEW_FILE = "sglang/srt/speculative/brand_new.py"


@pytest.fixture
def future(site):
    """``future("0.5.24", base="0.5.23")``: a release under a number that no snapshot has."""

    def make(version: str = FUTURE[0], base: str = KNOWN) -> Site:
        here = site(base)
        here.renumber(version)
        return here

    return make


def warnings(result, code: str) -> list[dict[str, object]]:
    return [item for item in result.json["diagnostics"] if (item["code"], item["severity"]) == (code, "warning")]


# --- newer than every snapshot -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "base"), [(FUTURE[0], KNOWN), (FUTURE[1], NEWEST)])
def test_a_newer_release_of_a_known_shape_is_applied_and_said_to_be_unproved(future, run, version, base):
    here = future(version, base)
    before = here.bytes_of(SERVER_ARGS)
    planned = run(here, "plan")
    assert planned.exit_code == 0
    assert planned.json["release"] == {"standing": "unproved", "nearest": base, "agreement": 1.0}
    (what,) = warnings(planned, "unproved")
    assert f"sglang {version} is none of the releases" in what["summary"]
    assert f"the nearest is {base}" in what["summary"] and "(100.0%)" in what["summary"]
    assert "ddtree-patch diff" in what["remedy"] and "--tier e2e" in what["remedy"]
    assert run(here, *APPLY).exit_code == 0
    verified = run(here, "verify", "--tier", "static")
    assert verified.exit_code == 0
    assert "proved of it here: static;" in warnings(verified, "unproved")[-1]["summary"]
    assert run(here, "revert").exit_code == 0
    assert here.bytes_of(SERVER_ARGS) == before


def test_how_much_of_a_newer_release_is_known_is_counted_by_symbol(future, run):
    here = future()
    here.edit(SPEC_INFO, appending(b"\n\ndef brand_new():\n    return 1\n"))
    here.edit(SPEC_INFO, replacing(b"def is_none(self) -> bool:\n", b"def is_none(self) -> bool:\n        1 + 1\n"))
    here.bless(SPEC_INFO)
    planned = run(here, "plan")
    assert planned.exit_code == 0
    (what,) = warnings(planned, "unproved")
    share = planned.json["release"]["agreement"]
    assert 0.99 < share < 1.0 and f"({share:.1%})" in what["summary"]
    all_of_it = int(what["summary"].split(" of its ")[1].split()[0])
    assert f"{all_of_it - 1} of its {all_of_it} watched symbols" in what["summary"]


def test_a_newer_release_of_another_shape_is_a_conflict_that_names_the_place(future, run):
    here = future()
    here.edit(SPEC_INFO, replacing(b"    DFLASH = auto()\n", b"    D_FLASH = auto()\n"))
    here.bless(SPEC_INFO)
    with untouched(here.folder):
        result = run(here, *APPLY)
        first = refused(result, ExitCode.CONFLICT, "anchor_missing", SPEC_INFO, "D_FLASH = auto()")
    assert first["line"] > 0
    assert warnings(result, "unproved")


def test_doctor_says_that_a_release_is_unproved(future, run):
    report = run(future(), "doctor")
    assert report.exit_code == 0 and warnings(report, "unproved")


def test_a_build_with_the_number_of_a_release_and_code_of_none(site, run):
    """A nightly build, a fork: RECORD vouches for it, and no release has these files."""
    here = site()
    here.edit(SPEC_INFO, appending(b"\n# built in the night\n"))
    here.bless(SPEC_INFO)
    planned = run(here, "plan")
    assert planned.exit_code == 0
    (what,) = warnings(planned, "unproved")
    assert "says that it is sglang 0.5.11, and 1 of" in what["summary"] and SPEC_INFO in what["detail"]


# --- a new place where DFLASH is asked for by name -----------------------------------------------------------------

# file, edit, definition, code that is named
USES = {
    "a literal in a file that steps touch": (
        SERVER_ARGS,
        replacing(
            b"        self._handle_hpu_backends()\n",
            b'        self._handle_hpu_backends()\n        if self.speculative_algorithm in ("EAGLE", "DFLASH"):\n'
            b"            self.page_size = 64\n",
        ),
        "ServerArgs.__post_init__",
        "self.speculative_algorithm in ('EAGLE', 'DFLASH')",
    ),
    "a member of the enum in a file that no step touches": (
        ELSEWHERE,
        appending(b"\n\ndef chain_only(algo):\n    return algo == SpeculativeAlgorithm.DFLASH\n"),
        "chain_only",
        "algo == SpeculativeAlgorithm.DFLASH",
    ),
    "a tuple of members": (
        ELSEWHERE,
        appending(b"\n\nCHAINS = (SpeculativeAlgorithm.DFLASH, SpeculativeAlgorithm.EAGLE)\n"),
        "the module",
        "CHAINS = (SpeculativeAlgorithm.DFLASH, SpeculativeAlgorithm.EAGLE)",
    ),
    "a known one once more": (
        DFLASH_INFO,
        appending(b"\n\ndef is_chain(x):\n    return x.spec_input_type == SpecInputType.DFLASH_VERIFY\n"),
        "is_chain",
        "x.spec_input_type == SpecInputType.DFLASH_VERIFY",
    ),
    "a new file": (
        NEW_FILE,
        b'def choose(args):\n    return 1 if args.speculative_algorithm == "DFLASH" else 2\n',
        "choose",
        "args.speculative_algorithm == 'DFLASH'",
    ),
}


def line_of(data: bytes, use: str) -> int:
    """Where a use stands in a file, however it is quoted."""
    lines = data.decode().replace('"', "'").splitlines()
    (found,) = (number for number, line in enumerate(lines, 1) if use in line)
    return found


@pytest.mark.parametrize("case", USES)
def test_a_use_without_a_verdict_is_an_alarm(future, run, case):
    path, edit, scope, use = USES[case]
    here = future()
    line = line_of(here.edit(path, edit), use)
    here.bless(path)
    with untouched(here.folder):
        for command in (("plan",), APPLY):
            result = run(here, *command)
            first = refused(result, ExitCode.CONFLICT, "unknown_literal", f"{path}:{line}", use, scope, "DFLASH")
            assert (first["path"], first["line"]) == (path, line)
            assert "--allow-drift" in first["remedy"] and "verdict" in first["remedy"]
            assert len(errors(result)) == 1
    accepted = run(here, "plan", "--allow-drift")
    assert accepted.exit_code == 0
    assert [item["line"] for item in warnings(accepted, "unknown_literal")] == [line]
    assert run(here, *APPLY, "--allow-drift").exit_code == 0
    assert run(here, "revert").exit_code == 0


def test_a_use_in_a_file_that_record_does_not_list_is_an_alarm_too(future, run):
    here = future()
    here.edit(NEW_FILE, USES["a new file"][1])
    refused(run(here, "plan"), ExitCode.CONFLICT, "unknown_literal", f"{NEW_FILE}:2")


def test_what_is_applied_already_is_judged_by_its_pristine_bytes(future, run):
    """The patched files are full of names that the pristine ones do not have."""
    here = future()
    assert run(here, *APPLY).exit_code == 0
    again = run(here, "plan")
    assert again.exit_code == 0 and set(again.outcomes.values()) <= {"already", "not_needed"}


def test_an_unreadable_file_that_holds_the_name_is_an_alarm(future, run):
    here = future()
    here.edit(NEW_FILE, b'match algo:\n  case "DFLASH" if\n')
    first = refused(run(here, "plan"), ExitCode.CONFLICT, "not_roundtrippable", NEW_FILE, "cannot parse")
    assert first["line"] > 0


# --- the anchor of the worker ------------------------------------------------------------------------------------


INIT = b"        self.server_args = server_args\n"
LOGITS = b"        logits_output = target_out.logits_output\n"
# Of each worker the first and the last release: file, and a line that an anchor is.
WORKERS = {
    "0.5.11": (DFLASH_WORKER, INIT),
    KNOWN: (DFLASH_WORKER, INIT),
    "0.5.14": (DFLASH_WORKER_V2, LOGITS),
    NEWEST: (DFLASH_WORKER_V2, LOGITS),
}


@pytest.mark.parametrize("version", WORKERS)
def test_a_worker_in_which_the_anchor_is_there_twice(site, run, version):
    path, anchor = WORKERS[version]
    here = site(version)
    edited = here.edit(path, doubling(anchor))
    here.bless(path)
    lines = [number for number, line in enumerate(edited.splitlines(keepends=True), 1) if line == anchor]
    assert len(lines) == 2
    code = anchor.decode().strip()
    with untouched(here.folder):
        places = [f"line {line}: {code}" for line in lines]
        first = refused(run(here, *APPLY), ExitCode.CONFLICT, "anchor_ambiguous", path, "exactly one", *places)
    assert "never guesses" in first["remedy"]
    assert first["line"] == lines[0]


# --- patched by another tool -------------------------------------------------------------------------------------

MEMBER = replacing(b"    DFLASH = auto()\n", b"    DFLASH = auto()\n    DDTREE = auto()\n")
WAY_OUT = "pip install --force-reinstall --no-deps sglang==0.5.11"


def test_a_member_that_a_wheel_has_already(site, run):
    here = site()
    here.edit(SPEC_INFO, MEMBER)
    here.bless(SPEC_INFO)
    with untouched(here.folder):
        for options in ((), ("--allow-drift",)):
            result = run(here, *APPLY, *options)
            first = refused(result, ExitCode.CONFLICT, "half_upstreamed", SPEC_INFO, "RECORD vouches", "another tool")
            assert WAY_OUT in first["remedy"] and "use what is there" in first["remedy"]


def test_a_member_that_was_written_into_an_installation(site, run):
    here = site()
    here.edit(SPEC_INFO, MEMBER)
    with untouched(here.folder):
        result = run(here, *APPLY)
        refused(result, ExitCode.CONFLICT, "foreign", SPEC_INFO)
        (half,) = [item for item in errors(result) if item["code"] == "half_upstreamed"]
    assert "another digest" in half["detail"] and "state folder" in half["detail"]
    assert WAY_OUT in half["remedy"]


def test_a_worker_of_another_tool(site, run):
    here = site()
    here.edit(DDTREE_WORKER, b"class DDTreeWorker:\n    pass\n")
    with untouched(here.folder):
        first = refused(
            run(here, *APPLY),
            ExitCode.CONFLICT,
            "half_upstreamed",
            DDTREE_WORKER,
            "RECORD does not list",
            "another tool",
        )
    assert "Move that file away" in first["remedy"] and WAY_OUT in first["remedy"]


def test_our_name_in_a_file_that_no_step_would_change_there(site, run):
    """A foreign patch need not touch the places that ours does."""
    here = site()
    edited = here.edit(ELSEWHERE, appending(b'\n\ndef is_tree(algo):\n    return algo in ("DFLASH", "DDTREE")\n'))
    here.bless(ELSEWHERE)
    line = line_of(edited, "algo in ('DFLASH', 'DDTREE')")
    with untouched(here.folder):
        for options in ((), ("--allow-drift",)):
            result = run(here, *APPLY, *options)
            first = refused(
                result, ExitCode.CONFLICT, "half_upstreamed", f"{ELSEWHERE}:{line}", "knows DDTREE", "RECORD vouches"
            )
            assert WAY_OUT in first["remedy"]
            assert len(errors(result)) == 1


# --- put together from two releases ------------------------------------------------------------------------------

MIXTURES = {
    "server_args of an older release": (KNOWN, "0.5.11", SERVER_ARGS),
    "worker of an older release": (KNOWN, "0.5.11", DFLASH_WORKER),
    "server_args of a newer release": ("0.5.11", KNOWN, SERVER_ARGS),
    "scheduler of a newer release": ("0.5.12", "0.5.13", SCHEDULER),
}


@pytest.mark.parametrize("repacked", [False, True], ids=["copied over", "repacked"])
@pytest.mark.parametrize("case", MIXTURES)
def test_a_file_of_another_release_is_named_with_that_release(site, shared_tree, run, case, repacked):
    version, other, path = MIXTURES[case]
    here = site(version)
    here.edit(path, Path(shared_tree(other), path).read_bytes())
    if repacked:
        here.bless(path)
    with untouched(here.folder):
        for command in (("plan",), APPLY):
            result = run(here, *command)
            first = refused(result, ExitCode.CONFLICT, "mixed", path, other, f"and this is {version}")
            assert first["path"] == path
            assert f"sglang=={version}" in first["remedy"]
            assert ("came with the wheel" if repacked else "RECORD says otherwise") in first["detail"]
            assert result.json.get("release", {"standing": "mixed"})["standing"] == "mixed"
            assert "foreign" not in result.codes, "one cause is said once"


def test_a_mixture_that_is_wanted_is_planned_by_its_code(site, shared_tree, run):
    here = site("0.5.12")
    here.edit(SCHEDULER, Path(shared_tree("0.5.12.post1"), SCHEDULER).read_bytes() + b"\n# and more\n")
    here.bless(SCHEDULER)
    assert run(here, "plan").exit_code == 0  # of no release: not a mixture
    here.edit(SCHEDULER, Path(shared_tree("0.5.13"), SCHEDULER).read_bytes())
    here.bless(SCHEDULER)
    accepted = run(here, "plan", "--allow-drift")
    assert warnings(accepted, "mixed")
    assert "mixed" not in [item["code"] for item in errors(accepted)]


def test_a_release_under_the_number_of_another(site, run):
    here = site(KNOWN)
    here.renumber("0.5.11")
    first = refused(run(here, "plan"), ExitCode.CONFLICT, "mixed", KNOWN, "and this is 0.5.11")
    assert SERVER_ARGS in first["detail"]
