"""The files are not what the steps expect: gone, damaged, edited, of another shape, or with DDTREE in them already."""

from __future__ import annotations

import pytest
from bad_site import (
    APPLY,
    DDTREE_ARGS,
    DFLASH_INFO,
    DFLASH_WORKER,
    ELSEWHERE,
    SERVER_ARGS,
    SPEC_INFO,
    SPEC_REGISTRY,
    SPECULATIVE_HOOK,
    STATE,
    appending,
    changed_files,
    doubling,
    errors,
    listing,
    refused,
    replacing,
    untouched,
)

from ddtree_patcher.model import ExitCode

TARGETS = (SERVER_ARGS, SPEC_INFO, DFLASH_INFO, DFLASH_WORKER)
LATER = "0.5.13.post1"
EDIT = appending(b"\n# a local edit\n")

# --- a file that cannot be read as Python ------------------------------------------------------------------------

DAMAGE = {
    "not UTF-8": (appending(b"\n# caf\xe9\n"), "not_roundtrippable", "not valid UTF-8"),
    "another encoding": (lambda data: b"# coding: latin-1\n" + data, "not_roundtrippable", "iso-8859-1, not UTF-8"),
    "NUL bytes": (appending(b"\0"), "not_roundtrippable", "NUL bytes"),
    "a syntax error": (appending(b"\ndef broken(:\n"), "not_roundtrippable", "not valid Python"),
    "cut off": (lambda data: data[: data.index(b"class ") + 9], "not_roundtrippable", "not valid Python"),
    "empty": (b"", "anchor_missing", ""),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("target", TARGETS)
def test_a_damaged_file_of_an_sglang_that_says_it_is_its_own(bench, run, target, damage):
    here = bench()
    edit, word, says = DAMAGE[damage]
    here.edit(target, edit)
    here.bless(target)
    with untouched(here.folder):
        refused(run(here, *APPLY), ExitCode.CONFLICT, word, target, says)


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_first_said_to_be_an_edit(bench, run, damage):
    """The cause comes first; that no step can read the file is said after it."""
    here = bench()
    edit, word, _ = DAMAGE[damage]
    here.edit(SERVER_ARGS, edit)
    with untouched(here.folder):
        result = run(here, *APPLY)
        refused(result, ExitCode.CONFLICT, "foreign", SERVER_ARGS, "somebody else edited")
        assert [item["code"] for item in errors(result)] == ["foreign", word]
        refused(run(here, *APPLY, "--allow-drift"), ExitCode.CONFLICT, word, SERVER_ARGS)


@pytest.mark.parametrize("command", [("plan",), APPLY, (*APPLY, "--allow-drift"), ("apply", "--verify", "none")])
@pytest.mark.parametrize("version", ["0.5.11", LATER])
@pytest.mark.parametrize("target", [*TARGETS, SPEC_REGISTRY])
def test_a_deleted_file(bench, run, version, target, command):
    """Of the registry too, whose absence is another release's shape: a plan for that shape would break this one."""
    if (version, target) == ("0.5.11", SPEC_REGISTRY):
        return  # that release has none
    here = bench(version)
    here.edit(target, None)
    with untouched(here.folder):
        result = run(here, *command)
        first = refused(result, ExitCode.CONFLICT, "missing", target, "was deleted")
    assert "Reinstall" in first["remedy"]
    assert [item["code"] for item in errors(result) if item["path"] == target] == ["missing"]


def test_a_file_that_the_release_does_not_have(bench, run):
    here = bench()
    here.edit(SPEC_INFO, None)
    lines = here.bytes_of(here.record).splitlines(keepends=True)
    here.edit(here.record, b"".join(line for line in lines if not line.startswith(SPEC_INFO.encode())))
    with untouched(here.folder):
        result = run(here, *APPLY)
        refused(result, ExitCode.CONFLICT, "file_missing", f"there is no {SPEC_INFO}")
    assert [item["code"] for item in errors(result)] == ["file_missing"]


def test_a_file_that_stands_where_the_patchset_adds_its_own(bench, run):
    here = bench()
    here.edit(DDTREE_ARGS, b"ANSWER = 42\n")
    with untouched(here.folder):
        for options in ((), ("--allow-drift",)):
            first = refused(run(here, *APPLY, *options), ExitCode.CONFLICT, "half_upstreamed", DDTREE_ARGS)
            assert "Move that file away" in first["remedy"]


# --- anchors -----------------------------------------------------------------------------------------------------

MEMBER = b"    DFLASH = auto()\n"
OPTION = b'        parser.add_argument(\n            "--speculative-dflash-block-size",'
SHORT_OPTION = b'        parser.add_argument("--speculative-dflash-block-size", type=int)\n'
BRANCH = b'if self.speculative_algorithm == "DFLASH":'
HPU = b"        self._handle_hpu_backends()\n"
KEEP = b"        self.server_args = server_args\n"
CALL = b"        _handle_dflash(server_args)\n"

# version, step, file, edit, outcome, what the message names
ANCHORS = {
    "member removed": ("0.5.11", "enum", SPEC_INFO, replacing(MEMBER, b""), "anchor_missing", "member DFLASH"),
    "member renamed": (
        "0.5.11",
        "enum",
        SPEC_INFO,
        replacing(MEMBER, b"    D_FLASH = auto()\n"),
        "anchor_missing",
        "line 18: D_FLASH = auto()",
    ),
    "class renamed": (
        "0.5.11",
        "enum",
        SPEC_INFO,
        lambda data: data.replace(b"SpeculativeAlgorithm", b"SpecAlgorithm"),
        "anchor_missing",
        "class SpecAlgorithm(Enum):",
    ),
    "class twice": (
        LATER,
        "enum",
        SPEC_INFO,
        appending(b"\n\nclass SpeculativeAlgorithm:\n    pass\n"),
        "anchor_ambiguous",
        "one definition of SpeculativeAlgorithm",
    ),
    "predicate renamed": (
        "0.5.11",
        "enum",
        SPEC_INFO,
        replacing(b"def is_dflash", b"def was_dflash"),
        "anchor_missing",
        "def was_dflash",
    ),
    "registry of a new shape": (
        LATER,
        "enum",
        SPEC_REGISTRY,
        lambda data: data.replace(b"_reserved_names", b"_taken_names"),
        "anchor_missing",
        "_reserved_names",
    ),
    "option renamed": (
        "0.5.11",
        "flags",
        SERVER_ARGS,
        replacing(b'"--speculative-dflash-block-size"', b'"--speculative-dflash-block"'),
        "anchor_missing",
        "--speculative-dflash-block-size",
    ),
    "option twice": (
        "0.5.11",
        "flags",
        SERVER_ARGS,
        replacing(OPTION, SHORT_OPTION + OPTION),
        "anchor_ambiguous",
        "--speculative-dflash-block-size",
    ),
    "field renamed": (
        "0.5.11",
        "flags",
        SERVER_ARGS,
        replacing(b"    speculative_dflash_block_size: ", b"    speculative_dflash_size: "),
        "anchor_missing",
        "speculative_dflash_size",
    ),
    "call renamed": (
        LATER,
        "validation",
        SERVER_ARGS,
        replacing(HPU, b"        self._handle_hpu()\n"),
        "anchor_missing",
        "self._handle_hpu_backends()",
    ),
    "call twice": ("0.5.11", "validation", SERVER_ARGS, doubling(HPU), "anchor_ambiguous", "exactly one"),
    "branch renamed": (
        "0.5.11",
        "validation",
        SERVER_ARGS,
        replacing(BRANCH, b'if self.speculative_algorithm == "OTHER":'),
        "anchor_missing",
        'speculative_algorithm == "DFLASH"',
    ),
    "hook renamed": (
        LATER,
        "validation",
        SPECULATIVE_HOOK,
        replacing(b"def handle_speculative_decoding", b"def handle_decoding"),
        "anchor_missing",
        "handle_speculative_decoding",
    ),
    "hook call twice": (LATER, "validation", SPECULATIVE_HOOK, doubling(CALL), "anchor_ambiguous", "exactly one"),
    "contract broken": (
        LATER,
        "validation",
        SERVER_ARGS,
        replacing(b"def enable_mamba_extra_buffer(self", b"def has_extra_buffer(self"),
        "precondition_failed",
        "ServerArgs.enable_mamba_extra_buffer",
    ),
    "choices without DFLASH": (
        "0.5.11",
        "choices",
        SERVER_ARGS,
        replacing(b'choices=["DFLASH", ', b"choices=["),
        "anchor_missing",
        '"DFLASH"',
    ),
    "method removed": (
        "0.5.11",
        "verify-input",
        DFLASH_INFO,
        replacing(b"    def verify(", b"    def check("),
        "precondition_failed",
        "DFlashVerifyInput.",
    ),
    "import from elsewhere": (
        LATER,
        "worker-import",
        DFLASH_WORKER,
        replacing(b"sglang.srt.speculative.dflash_info import", b"sglang.srt.speculative.infos import"),
        "anchor_missing",
        "sglang.srt.speculative.dflash_info",
    ),
    "attribute renamed": (
        "0.5.11",
        "worker-branch",
        DFLASH_WORKER,
        replacing(KEEP, b"        self.args = server_args\n"),
        "anchor_missing",
        "self.args = server_args",
    ),
    "attribute twice": (LATER, "worker-branch", DFLASH_WORKER, doubling(KEEP), "anchor_ambiguous", "exactly one"),
    "worker renamed": (
        LATER,
        "worker-branch",
        DFLASH_WORKER,
        replacing(b"class DFlashWorker", b"class DFlashWorkerX"),
        "anchor_missing",
        "DFlashWorker",
    ),
}


@pytest.mark.parametrize("case", ANCHORS)
def test_an_anchor_of_another_shape(bench, run, case):
    version, step, target, edit, outcome, says = ANCHORS[case]
    here = bench(version)
    here.edit(target, edit)
    here.bless(target)
    with untouched(here.folder):
        result = run(here, *APPLY)
    first = refused(result, ExitCode.CONFLICT, outcome, step, target, says)
    assert (first["step"], first["path"]) == (step, target)
    assert result.outcomes[step] == outcome
    assert "ddtree-patch diff" in first["remedy"]
    of_steps = [
        item for item in errors(result) if item["code"] != "unknown_literal"
    ]  # of what was renamed, no verdict is
    assert {item["path"] for item in of_steps} == {target}, "what waits for a step must not drown the cause"
    assert of_steps[0]["step"] == step
    assert len({item["summary"] for item in errors(result)}) == len(errors(result))


def test_two_places_are_both_shown(bench, run):
    here = bench()
    here.edit(SERVER_ARGS, replacing(OPTION, SHORT_OPTION + OPTION))
    here.bless(SERVER_ARGS)
    first = refused(run(here, "plan"), ExitCode.CONFLICT, "anchor_ambiguous", "exactly one")
    places = [(place["path"], place["line"], place["score"]) for place in first["candidates"]]
    assert len(places) == 2 and {score for _, _, score in places} == {1.0}
    assert (first["path"], first["line"]) == places[0][:2]
    for place in first["candidates"]:
        assert "--speculative-dflash-block-size" in "".join(row["text"] for row in place["context"])


def test_steps_that_wait_say_for_what(bench, run):
    here = bench()
    here.edit(SPEC_INFO, replacing(MEMBER, b""))
    here.bless(SPEC_INFO)
    report = run(here, "plan").json
    waiting = [item for item in report["diagnostics"] if item["code"] == "blocked_by"]
    alone = "deferred-clear"  # mends upstream, and needs nothing of DDTREE
    assert [item["step"] for item in waiting] == [step["id"] for step in report["steps"][1:] if step["id"] != alone]
    assert {item["severity"] for item in waiting} == {"note"}
    assert "waits for enum" in waiting[0]["summary"]


def test_an_edited_file_without_the_anchor_is_first_an_edited_file(bench, run):
    here = bench()
    here.edit(SPEC_INFO, replacing(MEMBER, b"    D_FLASH = auto()\n"))
    with untouched(here.folder):
        result = run(here, *APPLY)
        refused(result, ExitCode.CONFLICT, "foreign", SPEC_INFO)
        assert [item["code"] for item in errors(result)] == ["foreign", "anchor_missing"]


# --- already upstream --------------------------------------------------------------------------------------------


@pytest.fixture
def upstream(site, run):
    """``upstream(version, *options)``: an SGLang that has been released with (a part of) DDTREE in it."""

    def make(version: str, *options: str):
        here = site(version)
        patched = run(here, "apply", "--verify", "none", *options)
        assert patched.exit_code == 0
        for path in (here.folder / STATE).rglob("*"):
            if path.is_file():
                path.unlink()
        for path in sorted((here.folder / STATE).rglob("*"), reverse=True):
            path.rmdir()
        (here.folder / STATE).rmdir()
        here.bless(*(item["path"] for item in patched.json["files"]))
        return here

    return make


@pytest.mark.parametrize("version", ["0.5.11", LATER])
def test_wholly_upstream_there_is_nothing_to_do(upstream, run, version):
    here = upstream(version)
    with untouched(here.folder):
        for command in (("plan",), ("plan", "--check"), APPLY, APPLY):
            result = run(here, *command)
            assert result.exit_code == 0, result.stdout
            assert set(result.outcomes.values()) <= {"upstreamed", "not_needed"}
            assert (result.json["files"], errors(result)) == ([], [])
        assert run(here, "status").json["outcome"] == "clean"
        assert run(here, "revert").json["outcome"] == "clean"


@pytest.mark.parametrize("through", ["enum", "flags", "validation", "verify-input", "worker-import"])
@pytest.mark.parametrize("version", ["0.5.11", LATER])
def test_half_upstream_is_left_alone(upstream, run, version, through):
    here = upstream(version, "--through", through)
    with untouched(here.folder):
        result = run(here, *APPLY)
    refused(result, ExitCode.CONFLICT, "half_upstreamed", "enum", "already has a part")
    assert {item["code"] for item in errors(result)} == {"half_upstreamed"}
    assert "half_upstreamed" in result.outcomes.values()


def test_a_member_alone_is_half_upstream(bench, run):
    here = bench()
    here.edit(SPEC_INFO, replacing(MEMBER, MEMBER + b"    DDTREE = auto()\n"))
    here.bless(SPEC_INFO)
    with untouched(here.folder):
        first = refused(run(here, *APPLY), ExitCode.CONFLICT, "half_upstreamed", SPEC_INFO, "enum")
    assert first["line"] == 19


# --- edited by somebody else -------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_edited_before(site, run, target):
    here = site()
    edited = here.edit(target, EDIT)
    with untouched(here.folder):
        status = run(here, "status")
        assert (status.exit_code, status.json["outcome"]) == (0, "drifted")
        assert [(item["path"], item["state"]) for item in status.json["files"]] == [(target, "foreign")]
        for command in (("plan",), APPLY):
            first = refused(run(here, *command), ExitCode.CONFLICT, "foreign", target, "somebody else edited")
            assert "pip install --force-reinstall" in first["remedy"] and "--allow-drift" in first["detail"]
        doctor = run(here, "doctor").json
        assert [(item["code"], item["path"]) for item in doctor["diagnostics"] if item["path"]] == [("foreign", target)]
        assert run(here, "revert").json["outcome"] == "clean"
    assert run(here, *APPLY, "--allow-drift").exit_code == 0
    with untouched(here.folder):
        assert run(here, "status", "--check").json["outcome"] == "applied"
        assert run(here, "verify", "--tier", "static").exit_code == 0
        assert set(run(here, *APPLY).outcomes.values()) == {"already", "not_needed"}
    assert run(here, "revert").exit_code == 0
    assert here.bytes_of(target) == edited


def test_drift_gives_back_the_edited_bytes_and_everything_else(site, run):
    here = site(LATER)
    here.edit(SERVER_ARGS, EDIT)
    here.edit(ELSEWHERE, EDIT)
    before = listing(here.folder)
    assert run(here, *APPLY, "--allow-drift").exit_code == 0
    assert run(here, "revert").exit_code == 0
    assert changed_files(before, here.folder) == []


def test_a_drifted_file_that_was_deleted_comes_back_too(site, run):
    here = site()
    edited = here.edit(SERVER_ARGS, EDIT)
    assert run(here, *APPLY, "--allow-drift").exit_code == 0
    here.edit(SERVER_ARGS, None)
    assert run(here, "revert").exit_code == 0
    assert here.bytes_of(SERVER_ARGS) == edited


@pytest.mark.parametrize("target", [*TARGETS, DDTREE_ARGS])
def test_edited_after(site, run, target):
    here = site()
    before = listing(here.folder)
    assert run(here, *APPLY).exit_code == 0
    here.edit(target, EDIT)
    with untouched(here.folder):
        status = run(here, "status", "--check")
        assert (status.exit_code, status.json["outcome"]) == (3, "drifted")
        for command in (("plan",), APPLY, (*APPLY, "--allow-drift"), ("revert",)):
            result = run(here, *command)
            first = refused(result, ExitCode.CONFLICT, "foreign", target, "after it was patched")
            assert "--discard-edits" in first["remedy"]
            assert len(errors(result)) == 1, "our own patch beneath the edit must not look half upstreamed"
        result = run(here, "verify", "--tier", "static")
        refused(result, ExitCode.VERIFICATION_FAILED, "foreign", target)
        assert [item["code"] for item in errors(result)] == ["foreign", "verification_failed"]
    assert run(here, "revert", "--discard-edits").json["outcome"] == "clean"
    assert changed_files(before, here.folder) == []
    assert not (here.folder / DDTREE_ARGS).exists()


@pytest.mark.parametrize("target", [SERVER_ARGS, SPEC_INFO])
def test_deleted_after(site, run, target):
    here = site()
    before = listing(here.folder)
    assert run(here, *APPLY).exit_code == 0
    here.edit(target, None)
    with untouched(here.folder):
        assert run(here, "status").json["outcome"] == "drifted"
        for command in (("plan",), APPLY):
            result = run(here, *command)
            first = refused(result, ExitCode.CONFLICT, "missing", target)
            assert "ddtree-patch revert" in first["remedy"]
            assert len(errors(result)) == 1
        result = run(here, "verify", "--tier", "static")
        refused(result, ExitCode.VERIFICATION_FAILED, "missing", target)
        assert len(errors(result)) == 2
    assert run(here, "revert").json["outcome"] == "clean"
    assert changed_files(before, here.folder) == []


def test_an_added_file_that_was_deleted_is_added_again(site, run):
    here = site()
    assert run(here, *APPLY).exit_code == 0
    here.edit(DDTREE_ARGS, None)
    with untouched(here.folder):
        result = run(here, "verify", "--tier", "static")
        refused(result, ExitCode.VERIFICATION_FAILED, "wiped", DDTREE_ARGS, "was deleted")
    again = run(here, *APPLY)
    assert (again.exit_code, again.outcomes["flags"], again.outcomes["enum"]) == (0, "applied", "already")
    assert run(here, "revert").exit_code == 0
    assert not (here.folder / DDTREE_ARGS).exists()


def test_an_edit_elsewhere_after_applying(site, run):
    here = site()
    assert run(here, *APPLY).exit_code == 0
    edited = here.edit(ELSEWHERE, EDIT)
    with untouched(here.folder):
        assert run(here, "status").json["outcome"] == "applied"
        for command in (("verify", "--tier", "static"), APPLY):
            first = refused(run(here, *command), ExitCode.VERIFICATION_FAILED, "verification_failed", ELSEWHERE)
            assert "--allow-drift" in first["remedy"]
    assert run(here, "revert").exit_code == 0
    assert here.bytes_of(ELSEWHERE) == edited
