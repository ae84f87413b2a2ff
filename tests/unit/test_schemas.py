"""docs/schema says all that reports may hold, and nothing else: words as in the code, no member that is not named."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from jsonschema import Draft202012Validator

import schemas
from ddtree_patcher import resources
from ddtree_patcher.cli import main
from ddtree_patcher.fingerprint import SymbolKind
from ddtree_patcher.model import (
    CheckOutcome,
    CheckResult,
    Diagnostic,
    ExitCode,
    FileState,
    FileStatus,
    InstallationStatus,
    Place,
    ReleaseVerdict,
    Report,
    Severity,
    StepOutcome,
    StepProspect,
    StepResult,
    Tier,
    Word,
)
from ddtree_patcher.operations.standing import Standing
from ddtree_patcher.report import as_json
from ddtree_patcher.report.statuses import statuses_in
from ddtree_patcher.snapshot_compare import ChangeKind

ROOT = Path(__file__).resolve().parents[2]
SYMBOLS = ("files", "additionalProperties", "anyOf", 1, "properties", "symbols", "additionalProperties", "properties")
# Where a schema has the words of a vocabulary: file, then the members that lead there.
VOCABULARIES: dict[tuple[Any, ...], type[Word]] = {
    ("report-1.json", "$defs", "step", "properties", "outcome"): StepOutcome,
    ("report-1.json", "$defs", "file", "properties", "state"): FileStatus,
    ("report-1.json", "$defs", "check", "properties", "tier"): Tier,
    ("report-1.json", "$defs", "check", "properties", "outcome"): CheckOutcome,
    ("report-1.json", "$defs", "diagnostic", "properties", "severity"): Severity,
    ("report-1.json", "$defs", "standing", "properties", "standing"): Standing,
    ("report-1.json", "$defs", "release", "properties", "verdict"): ReleaseVerdict,
    ("diff-1.json", "properties", "changes", "items", "properties", "change"): ChangeKind,
    ("diff-1.json", "properties", "meaning", "items", "properties", "prospect"): StepProspect,
    ("diff-1.json", "properties", "meaning", "items", "properties", "outcome"): StepOutcome,
    ("snapshot-file-1.json", "properties", *SYMBOLS, "kind"): SymbolKind,
    ("events-1.json", "oneOf", 2, "properties", "outcome"): StepOutcome,
    ("events-1.json", "oneOf", 3, "properties", "tier"): Tier,
    ("events-1.json", "oneOf", 3, "properties", "outcome"): CheckOutcome,
    ("events-1.json", "oneOf", 4, "properties", "verdict"): ReleaseVerdict,
}
REPORT = Report(
    "plan",
    ExitCode.CONFLICT,
    "conflict",
    steps=(StepResult("one", StepOutcome.ANCHOR_MISSING),),
    files=(FileState("pkg/a.py", FileStatus.FOREIGN, False, "a" * 64, "b" * 64, "c" * 64),),
    checks=(CheckResult(Tier.STATIC, "x", CheckOutcome.NOT_RUN, "why", rows=({"n": 1, "t": None},)),),
    diagnostics=(
        Diagnostic(
            "anchor_missing", Severity.ERROR, "gone", candidates=(Place("pkg/a.py", 3, 0.5, ((3, "x"), (4, "y"))),)
        ),
    ),
)


def envelope() -> Any:
    return json.loads(as_json.render(REPORT))


def inside(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object of a schema's text."""
    if isinstance(schema, dict):
        yield schema
        for part in schema.values():
            yield from inside(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from inside(part)


@pytest.mark.parametrize("name", schemas.published())
def test_a_schema_is_one_and_says_what_it_is_for(name: str) -> None:
    schema = schemas.published()[name]
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    assert schema["title"].startswith(("ddtree-patch", "GitLab")) and schema["description"]


@pytest.mark.parametrize("name", schemas.published())
def test_what_a_schema_refers_to_is_there(name: str) -> None:
    for item in inside(schemas.published()[name]):
        if "$ref" in item:
            file, _, pointer = item["$ref"].partition("#")
            target = schemas.published()[file or name]
            for part in pointer.split("/")[1:]:
                target = target[part]


@pytest.mark.parametrize("name", [name for name in schemas.published() if name != "attestation-1.json"])
def test_no_object_of_ours_takes_a_member_that_is_not_named(name: str) -> None:
    """But for a statement of in-toto: its readers ignore what they do not know."""
    schema = schemas.published()[name]
    for item in inside(schema):
        if item.get("type") == "object" and "properties" in item and item is not schemas.published()["report-1.json"]:
            assert item["additionalProperties"] is False, item
    if "$ref" in schema:  # a command's report: what the envelope does not name, either
        assert schema["unevaluatedProperties"] is False


@pytest.mark.parametrize("place", VOCABULARIES, ids=lambda place: "-".join(map(str, place)))
def test_a_schema_has_the_words_of_the_code(place: tuple[Any, ...]) -> None:
    found: Any = schemas.published()
    for part in place:
        found = found[part]
    assert found["enum"] == [word.value for word in VOCABULARIES[place]]


def test_no_other_list_of_words_is_left_unwatched() -> None:
    """An enumeration that is none of those above is one of these few, which have no vocabulary in the code."""
    definitions = schemas.published()["report-1.json"]["$defs"]
    known = [[word.value for word in words] for words in VOCABULARIES.values()]
    known += [definitions[name]["enum"] for name in ("exit_code", "exit_name", "outcome", "word")]
    known += [["wheel", "unpacked", "editable", "vcs"], ["named", "version", "nearest"], [0, 3], [0]]
    known += [["", *(tier.value for tier in Tier)], ["critical", "minor", "info"]]
    known += [["already", "upstreamed", "not_needed"], [tier.value for tier in Tier]]  # of an attestation
    for name, schema in schemas.published().items():
        for item in inside(schema):
            assert "enum" not in item or item["enum"] in known, f"{name}: {item['enum']}"


def test_exit_codes_and_outcomes() -> None:
    definitions = schemas.published()["report-1.json"]["$defs"]
    assert definitions["exit_code"]["enum"] == [int(code) for code in ExitCode]
    assert definitions["exit_name"]["enum"] == [code.symbol for code in ExitCode]
    words = {*(code.symbol for code in ExitCode), *(status.value for status in InstallationStatus)}
    assert set(definitions["outcome"]["enum"]) == words
    wrong = {**envelope(), "exit_name": "ok"}
    assert schemas.complaints(wrong) == ["plan-1.json: $.exit_name: 'conflict' was expected"]


def test_the_codes_of_diagnostics_are_the_words_of_the_page() -> None:
    page = (ROOT / "docs" / "statuses.md").read_text("utf-8")
    words = statuses_in(page)
    assert schemas.published()["report-1.json"]["$defs"]["word"]["enum"] == sorted(words)
    assert set(words) == set(re.findall(r"^## (\w+)$", page, flags=re.M)) and len(words) > 50
    assert all(text.startswith("**Meaning:**") for text in words.values())


def test_every_command_has_a_schema_and_every_schema_a_command() -> None:
    commands = {*main.list_commands(click.Context(main)), "command-line"}
    others = {"attestation", "report", "events", "code-quality", "saved-plan", "capabilities", "snapshot-file"}
    assert set(schemas.published()) == {f"{name}-1.json" for name in commands | others}


def test_a_report_is_as_its_schema_says() -> None:
    assert schemas.complaints({**envelope(), "exit_code": 4}) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"surprise": 1}, "Unevaluated properties are not allowed ('surprise' was unexpected)"),
        ({"outcome": "fine"}, "$.outcome: 'fine' is not one of"),
        ({"files": None}, "$.files: None is not of type 'array'"),
        ({"schema": "ddtree-patch.plan/2"}, "docs/schema has no plan-2.json"),
        ({"installation": {"root": "/x"}}, "$.installation: "),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_complaint_names_the_member(change: dict[str, Any], says: str) -> None:
    (found,) = schemas.complaints({**envelope(), **change})
    assert says in found


@pytest.mark.parametrize("part", ["steps", "files", "checks", "diagnostics"])
def test_a_part_takes_no_member_that_is_not_named_and_misses_none(part: str) -> None:
    for name in list(envelope()[part][0]):
        value = envelope()
        value[part][0]["more"] = value[part][0].pop(name)
        said = "\n".join(schemas.complaints(value))
        assert f"$.{part}[0]: {name!r} is a required property" in said
        assert f"$.{part}[0]: Additional properties are not allowed ('more' was unexpected)" in said


def test_a_check_that_was_not_run_has_a_reason() -> None:
    value = envelope()
    value["checks"][0]["detail"] = ""
    assert [item for item in schemas.complaints(value) if "$.checks[0].detail" in item]


def test_an_envelope_without_one_of_its_members() -> None:
    for name in ("outcome", "installation", "patchset", "steps", "files", "checks", "diagnostics"):
        value = envelope()
        del value[name]
        assert any(f"{name!r} is a required property" in item for item in schemas.complaints(value))


def test_committed_files_are_as_their_schemas_say() -> None:
    paths = [ROOT / "docs" / "capabilities.json", *sorted((ROOT / "snapshots").glob("*.json"))]
    assert len(paths) > 10
    for path in paths:
        assert schemas.complaints(json.loads(path.read_bytes())) == [], path


def test_what_a_wheel_has_of_the_documents() -> None:
    """SARIF quotes the page of statuses: it comes with the tool. In a checkout it lies where it is written."""
    assert (resources.folder("docs") / "statuses.md").is_file()
    configured = (ROOT / "pyproject.toml").read_text("utf-8")
    for name in ("statuses.md", "schema"):
        assert f'"docs/{name}" = "ddtree_patcher/_docs/{name}"' in configured
