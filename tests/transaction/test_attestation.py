"""``status --attest`` says nothing that does not hold; ``verify --attestation`` names what differs, and both sides."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ddtree_patcher.attestation import load
from ddtree_patcher.digest import sha256
from ddtree_patcher.errors import OtherPatchset, UsageError
from ddtree_patcher.model import CheckOutcome, ExitCode, Report
from ddtree_patcher.operations import attested, attesting, planning
from ddtree_patcher.operations.session import Options, Session

from .world import ADDED, CHANGED, MODULES, RECORD, World

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "schema" / "attestation-1.json"
ALPHA, BETA = CHANGED
OTHER = "tiny/other.py"


def attest(world: World, name: str = "a.json", *, check: bool = False) -> tuple[Report, Path]:
    file = world.base / name
    return attesting.attest(world.session(), file, check=check), file


@pytest.fixture
def proof(world: World) -> Path:
    """The attestation of the applied world."""
    world.apply()
    report, file = attest(world)
    assert report.exit_code is ExitCode.OK
    return file


def hold(world: World, proof: Path) -> Report:
    return attested.hold(world.session(), proof)


def failures(report: Report) -> dict[str, str]:
    return {item.id: item.detail for item in report.checks if item.outcome is CheckOutcome.FAILED}


# --- attesting ---------------------------------------------------------------------------------------------------


def test_it_says_what_was_changed_and_added_of_what_by_whom(world: World, proof: Path) -> None:
    document = json.loads(proof.read_bytes())
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_bytes())).validate(document)
    made = load(proof)
    assert made.subjects == {path: sha256(world.read(path)) for path in (*CHANGED, ADDED)}
    assert made.pristine == {path: sha256(MODULES[path].encode()) for path in CHANGED}
    assert (made.distribution, made.version) == ("tiny", "1.0")
    assert (made.patchset, made.whole, made.drift) == (world.session().identity, True, {})
    assert [(step.id, step.outcome.value, step.variant) for step in made.steps] == [
        ("value", "already", "one"),
        ("field", "already", "one"),
        ("file", "already", "one"),
    ]


def test_the_checks_are_those_that_ran_now(world: World, proof: Path) -> None:
    """Whatever ``apply`` verified: nobody remembers on which interpreter, and with which stand-ins."""
    checks = load(proof).checks
    assert list(checks) == ["static"]
    assert {"files-as-applied", f"compiles:{ALPHA}", "step:field", "nothing-else-changed"} <= {*checks["static"]}


def test_the_report_is_the_status_with_a_note(world: World) -> None:
    world.apply()
    report, file = attest(world, check=True)
    assert (report.command, report.outcome, report.exit_code) == ("status", "applied", ExitCode.OK)
    assert [item.code for item in report.diagnostics] == ["attested"]
    assert report.extra["attestation"] == {"file": str(file), "sha256": sha256(file.read_bytes()), "subjects": 3}


def test_the_same_tree_gives_the_same_bytes_wherever_it_lies(world: World, proof: Path, make_world: Any) -> None:
    assert attest(world, "again.json")[1].read_bytes() == proof.read_bytes()
    other = make_world("other")
    shutil.rmtree(other.patchset)
    shutil.copytree(world.patchset, other.patchset)
    other.apply()
    assert attest(other)[1].read_bytes() == proof.read_bytes()
    assert str(world.base).encode() not in proof.read_bytes()


def _edit(world: World) -> None:
    (world.site / ALPHA).write_bytes(world.read(ALPHA) + b"# mine\n")


def _elsewhere(world: World) -> None:
    (world.site / OTHER).write_bytes(b"x = 2\n")


def _newer(world: World) -> None:
    world.write_patchset(version="2", value="newer")


def _interrupted(world: World) -> None:
    (world.state / "journal.json").write_text(
        json.dumps({"schema": "ddtree-patch.journal/1", "pid": 1, "changes": [], "folders": [], "state": None})
    )


def _unrecorded(world: World) -> None:
    record = world.site / RECORD
    record.write_bytes(b"".join(line for line in record.read_bytes().splitlines(True) if b"made/deep" not in line))


REFUSED: dict[str, tuple[Callable[[World], object], str, str]] = {
    "nothing applied": (lambda world: world.revert(), "clean", "ddtree-patch apply"),
    "edited": (_edit, "edited", "revert --discard-edits"),
    "deleted": (lambda world: (world.site / ADDED).unlink(), "deleted", "ddtree-patch apply"),
    "edited elsewhere": (_elsewhere, "verification_failed", "Reinstall"),
    "another version of the patchset": (_newer, "outdated", "ddtree-patch apply"),
    "the state is lost": (lambda world: shutil.rmtree(world.state), "edited", ""),
    "RECORD was rewritten": (_unrecorded, "record_rewritten", "ddtree-patch apply"),
    "half done": (_interrupted, "interrupted", "ddtree-patch apply"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_hold_is_not_attested(world: World, case: str) -> None:
    world.apply()
    spoil, code, remedy = REFUSED[case]
    spoil(world)
    report, file = attest(world)
    assert report.exit_code is ExitCode.VERIFICATION_FAILED and report.command == "status"
    assert not file.exists()
    last = report.diagnostics[-1]
    assert last.code == "not_attested" and last.detail and last.remedy and remedy in last.remedy
    assert code in [item.code for item in report.diagnostics]


def test_an_earlier_attestation_is_left_as_it_is(world: World, proof: Path) -> None:
    before = proof.read_bytes()
    _edit(world)
    assert attest(world)[0].exit_code is ExitCode.VERIFICATION_FAILED
    assert proof.read_bytes() == before


def test_a_part_of_the_steps_is_attested_as_a_part(world: World) -> None:
    world.apply(through="field")
    report, file = attest(world, check=True)
    assert report.exit_code is ExitCode.CHANGES  # with --check, as without --attest
    made = load(file)
    assert made.whole is False and set(made.subjects) == set(CHANGED)
    assert {item.code for item in report.diagnostics} == {"partial", "attested"}


def test_accepted_drift_is_attested_as_such(world: World) -> None:
    _elsewhere(world)
    world.apply(allow_drift=True)
    report, file = attest(world)
    assert report.exit_code is ExitCode.OK
    assert load(file).drift == {OTHER: sha256(b"x = 2\n")}
    assert hold(world, file).exit_code is ExitCode.OK
    (world.site / OTHER).write_bytes(MODULES[OTHER].encode())  # as RECORD has it, and not as it was attested
    detail = failures(hold(world, file))["attested-files"]
    assert detail.startswith(f"{OTHER}: on disk {sha256(MODULES[OTHER].encode())[:12]}…, attested ")


def test_of_another_patchset_nothing_is_said(world: World, make_world: Any) -> None:
    world.apply()
    other = make_world("other")
    init = other.patchset / "__init__.py"
    init.write_text(init.read_text().replace('id="small"', 'id="another"'))
    session = Session(Options(root=str(world.site), patchset=str(other.patchset)))
    with pytest.raises(OtherPatchset):
        attesting.attest(session, world.base / "a.json", check=False)
    assert not (world.base / "a.json").exists()


def test_a_place_that_cannot_be_written_is_refused(world: World) -> None:
    world.apply()
    (world.base / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        attest(world, "file/a.json")


# --- holding a tree against it -----------------------------------------------------------------------------------


def test_the_tree_that_was_attested_holds(world: World, proof: Path) -> None:
    report = hold(world, proof)
    assert (report.command, report.exit_code, report.diagnostics) == ("verify", ExitCode.OK, ())
    assert {item.id: item.outcome.value for item in report.checks} == dict.fromkeys(
        ("attested-base", "attested-patchset", "attested-files", "attested-pristine", "nothing-else-changed"), "passed"
    )
    assert {(item.path, item.status.value, item.added) for item in report.files} == {
        (ALPHA, "patched", False),
        (BETA, "patched", False),
        (ADDED, "patched", True),
    }


def test_it_holds_where_the_state_is_lost_and_where_the_tree_was_copied(world: World, proof: Path) -> None:
    shutil.copytree(world.site, world.base / "copy")
    shutil.rmtree(world.base / "copy" / ".ddtree-patch")
    session = Session(Options(root=str(world.base / "copy"), patchset=str(world.patchset)))
    assert attested.hold(session, proof).exit_code is ExitCode.OK
    assert not (world.base / "copy" / ".ddtree-patch").exists()


def test_a_file_that_was_edited_or_deleted_is_named_with_both_sides(world: World, proof: Path) -> None:
    made = load(proof)
    _edit(world)
    (world.site / ADDED).unlink()
    report = hold(world, proof)
    assert report.exit_code is ExitCode.VERIFICATION_FAILED
    assert failures(report) == {
        "attested-files": f"{ALPHA}: on disk {sha256(world.read(ALPHA))[:12]}…, attested {made.subjects[ALPHA][:12]}…\n"
        f"{ADDED}: on disk missing, attested {made.subjects[ADDED][:12]}…"
    }
    (said,) = report.diagnostics
    assert said.code == "verification_failed" and ALPHA in said.detail and ADDED in said.detail and said.remedy
    assert {item.path: item.status.value for item in report.files} == {
        ALPHA: "foreign",
        ADDED: "missing",
        BETA: "patched",
    }


def test_a_pristine_tree_is_not_the_attested_one(world: World, proof: Path) -> None:
    world.revert()
    report = hold(world, proof)
    assert set(failures(report)) == {"attested-files"} and failures(report)["attested-files"].count("\n") == 2
    assert {item.path: item.status.value for item in report.files}[BETA] == "wiped"


def test_another_release_is_named(world: World, proof: Path) -> None:
    metadata = world.site / "tiny-1.0.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("Version: 1.0", "Version: 1.1"))
    report = hold(world, proof)
    assert failures(report) == {"attested-base": "installed is tiny 1.1, attested tiny 1.0"}
    assert "tiny==1.0" in report.diagnostics[0].remedy


def test_a_release_of_the_same_number_with_other_bytes_is_named(world: World, proof: Path) -> None:
    record = world.site / RECORD
    record.write_bytes(b"".join(line for line in record.read_bytes().splitlines(True) if b"alpha" not in line))
    said = failures(hold(world, proof))["attested-pristine"]
    assert said == f"{ALPHA}: before the patch not in RECORD, attested {load(proof).pristine[ALPHA][:12]}…"


def test_another_patchset_is_named_at_hand_and_applied(world: World, proof: Path) -> None:
    attested_digest = world.session().identity.digest
    _newer(world)
    at_hand = world.session().identity.digest
    said = failures(hold(world, proof))
    attested_is = f"attested small 1 ({attested_digest[:12]}…)"
    assert said == {"attested-patchset": f"at hand is small 2 ({at_hand[:12]}…), {attested_is}"}
    world.apply()
    said = failures(hold(world, proof))
    assert f"applied here is small 2 ({at_hand[:12]}…), {attested_is}" in said["attested-patchset"]
    assert set(said) == {"attested-patchset", "attested-files"}


def test_what_is_patched_here_and_was_not_attested_is_named(world: World) -> None:
    world.apply(through="field")
    file = attest(world)[1]
    world.apply()
    assert failures(hold(world, file)) == {"attested-files": f"{ADDED}: patched here, not attested"}


def test_an_edit_beside_the_patch_is_named(world: World, proof: Path) -> None:
    _elsewhere(world)
    (world.site / "tiny/sub/__init__.py").unlink()
    assert failures(hold(world, proof)) == {
        "nothing-else-changed": f"{OTHER}: not what RECORD says, and not attested\n"
        "tiny/sub/__init__.py: missing, and not attested"
    }


def test_without_record_it_says_what_was_not_checked(world: World, proof: Path) -> None:
    (world.site / RECORD).unlink()
    report = hold(world, proof)
    assert report.exit_code is ExitCode.OK
    not_run = {item.id: item.detail for item in report.checks if item.outcome is CheckOutcome.NOT_RUN}
    assert not_run == dict.fromkeys(("attested-pristine", "nothing-else-changed"), "the installation has no RECORD")


def test_nothing_is_written(world: World, proof: Path) -> None:
    before = world.footprint()
    hold(world, proof)
    attest(world)
    assert world.footprint() == before


# --- the command line --------------------------------------------------------------------------------------------


@pytest.fixture
def command(world: World, run_here: Any) -> Callable[..., Any]:
    return lambda *args: run_here("--root", world.site, "--patchset", world.patchset, *args)


def test_both_commands(world: World, command: Callable[..., Any], tmp_path: Path) -> None:
    world.apply()
    file, junit = tmp_path / "a.json", tmp_path / "junit.xml"
    made = command("status", "--attest", file).expect(0).json
    assert made["schema"] == "ddtree-patch.status/1" and made["attestation"]["subjects"] == 3
    command("verify", "--attestation", file, "--junit", junit).expect(0)
    assert b"attested-files" in junit.read_bytes()
    _edit(world)
    failed = command("verify", "--attestation", file).expect(5)
    assert failed.codes == ["verification_failed"] and failed.json["exit_name"] == "verification_failed"
    assert command("status", "--attest", tmp_path / "b.json").expect(5).codes[-1] == "not_attested"


@pytest.mark.parametrize("more", [("--tier", "static"), ("--tier", "smoke"), ("--require", "static")])
def test_an_attestation_is_no_tier(command: Callable[..., Any], more: tuple[str, str]) -> None:
    assert command("verify", "--attestation", "a.json", *more).expect(2).codes == ["usage"]


def test_a_file_that_is_none_is_a_usage_error(command: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    for name, says in (("nowhere.json", "cannot be read"), ("a.json", "its _type is None"), (".", "cannot be read")):
        refused = command("verify", "--attestation", tmp_path / name).expect(2)
        (said,) = refused.json["diagnostics"]
        assert said["code"] == "usage" and says in said["summary"] and "status --attest" in said["remedy"]


def test_a_saved_plan_is_no_attestation(world: World, command: Callable[..., Any], tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    command("plan", "--out", plan).expect(0)
    assert planning.load_plan(str(plan))
    command("verify", "--attestation", plan).expect(2)
