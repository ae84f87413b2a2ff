"""``matrix``: what is wrong with a release or with its wheel is said in its row, and the others go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from bad_site import SERVER_ARGS, Result

from ddtree_patcher.model import ExitCode
from small_wheel import make_wheel

GOOD = {"sglang/__init__.py": "", SERVER_ARGS: 'GRAMMAR_BACKEND_CHOICES = ["xgrammar", "llguidance"]\n'}
OTHER = {**GOOD, SERVER_ARGS: "GRAMMAR_BACKEND_CHOICES = load()\n"}
LATER = "0.5.90"  # a release that nobody knows
ACME = f"""\
from ddtree_patcher.codemods import AddFile, Anchor, ExtendLiteral
from ddtree_patcher.patchset import Patchset, Precondition, Step, Variant
from ddtree_patcher.shape import HasFile

PATH = {SERVER_ARGS!r}
EDIT = ExtendLiteral(PATH, Anchor("GRAMMAR_BACKEND_CHOICES = ..."), '"acme"', beside='"llguidance"')
PATCHSET = Patchset(
    id="acme",
    version="1",
    summary="",
    distribution="sglang",
    package="sglang",
    supports=">=0.5.11",
    steps=(Step("choice", "", "", (Variant("list", edits=(EDIT,)),)),),
    preconditions=(Precondition(HasFile(PATH), "it has no server", "Install 0.5.11 or later."),),
)
"""
Matrix = Callable[..., Result]


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    """A patchset of one step, which fits wherever the backends are a list."""
    folder = tmp_path / "acme"
    folder.mkdir()
    (folder / "__init__.py").write_text(ACME)
    return folder


@pytest.fixture
def matrix(acme: Path, tmp_path: Path, run_here: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> Matrix:
    """``matrix(*args)``: the command on the wheels in ``tmp_path / "wheels"``, with no index to fetch others from."""
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    return lambda *args: run_here("--patchset", acme, "matrix", "--wheels", tmp_path / "wheels", *args)


def rows(result: Result) -> Mapping[str, Any]:
    return {row["version"]: row for row in result.json["releases"]}


def verdicts(result: Result) -> Mapping[str, str]:
    return {version: row["verdict"] for version, row in rows(result).items()}


def test_a_release_that_fits_beside_others_that_do_not(matrix: Matrix, tmp_path: Path) -> None:
    make_wheel(tmp_path / "wheels", "0.5.90", GOOD)
    make_wheel(tmp_path / "wheels", "0.5.91", OTHER)
    make_wheel(tmp_path / "wheels", "0.5.92", {"sglang/__init__.py": ""})
    result = matrix("0.5.90", "0.5.91", "0.5.92", "0.5.93").expect(ExitCode.ENVIRONMENT_REFUSED)
    assert verdicts(result) == {
        "0.5.90": "applies",
        "0.5.91": "conflict",
        "0.5.92": "refused",  # it lacks what the patchset builds on
        "0.5.93": "refused",  # there is no such wheel
    }
    found = rows(result)
    assert [row["exit_code"] for row in found.values()] == [0, 4, 6, 6]
    assert found["0.5.90"]["steps"][0]["variant"] == "list"
    assert {check["outcome"] for check in found["0.5.90"]["checks"]} == {"passed"}
    (conflict,) = [item for item in found["0.5.91"]["diagnostics"] if item["severity"] == "error"]
    assert (conflict["code"], conflict["path"], conflict["step"]) == ("anchor_missing", SERVER_ARGS, "choice")
    assert found["0.5.92"]["diagnostics"][0]["remedy"] == "Install 0.5.11 or later."
    told = {item["summary"].partition(":")[0] for item in result.json["diagnostics"]}
    assert told == {"0.5.91", "0.5.92", "0.5.93"}
    assert all(item["remedy"] for item in result.json["diagnostics"])


def test_a_release_of_which_a_conflict_is_the_worst(matrix: Matrix, tmp_path: Path) -> None:
    make_wheel(tmp_path / "wheels", "0.5.90", GOOD)
    make_wheel(tmp_path / "wheels", "0.5.91", OTHER)
    assert matrix("0.5.90", "0.5.91").expect(ExitCode.CONFLICT).json["exit_name"] == "conflict"


def test_a_release_that_has_it_all(matrix: Matrix, tmp_path: Path) -> None:
    text = GOOD[SERVER_ARGS].replace('"llguidance"', '"llguidance", "acme"')
    make_wheel(tmp_path / "wheels", LATER, {**GOOD, SERVER_ARGS: text})
    assert verdicts(matrix(LATER).expect(0)) == {LATER: "nothing_to_do"}


def test_a_release_that_nobody_has_looked_at_applies_and_says_so(matrix: Matrix, tmp_path: Path) -> None:
    make_wheel(tmp_path / "wheels", LATER, GOOD)
    row = rows(matrix(LATER).expect(0))[LATER]
    assert (row["verdict"], row["release"]["standing"]) == ("applies", "unproved")
    assert {(item["code"], item["severity"]) for item in row["diagnostics"]} == {("unproved", "warning")}


def test_a_plan_that_does_not_compile(matrix: Matrix, acme: Path, tmp_path: Path) -> None:
    broken = ACME.replace("edits=(EDIT,)", "edits=(EDIT, AddFile('sglang/new.py', b'def ('))")
    (acme / "__init__.py").write_text(broken)
    make_wheel(tmp_path / "wheels", LATER, GOOD)
    result = matrix(LATER).expect(ExitCode.VERIFICATION_FAILED)
    assert verdicts(result) == {LATER: "verification_failed"}
    assert "compiles:sglang/new.py" in result.json["diagnostics"][0]["summary"]


def test_a_step_that_is_at_fault_on_one_release(matrix: Matrix, acme: Path, tmp_path: Path) -> None:
    promise = 'Step("choice", "", "", postcondition=(HasFile("sglang/more.py"),), variants='
    (acme / "__init__.py").write_text(ACME.replace('Step("choice", "", "", ', promise))
    make_wheel(tmp_path / "wheels", "0.5.90", GOOD)
    make_wheel(tmp_path / "wheels", "0.5.91", {**GOOD, "sglang/more.py": ""})
    result = matrix("0.5.90", "0.5.91").expect(ExitCode.CONFLICT)
    assert verdicts(result) == {"0.5.90": "conflict", "0.5.91": "applies"}
    assert rows(result)["0.5.90"]["diagnostics"][0]["code"] == "patchset_invalid"


def test_no_index_and_nothing_in_the_cache(matrix: Matrix, tmp_path: Path) -> None:
    result = matrix("0.5.11").expect(ExitCode.ENVIRONMENT_REFUSED)
    (problem,) = result.json["diagnostics"]
    assert problem["code"] == "environment_refused"
    assert "sglang 0.5.11 could not be fetched: no index offered it" in problem["summary"]
    assert "No matching distribution" in problem["detail"]
    assert str(tmp_path / "wheels") in problem["remedy"]
    assert rows(result)["0.5.11"]["wheel"] == ""


@pytest.mark.parametrize("words", [("latest",), ("0.5.12", "…", "0.5.11"), ("0.5.11", "…")])
def test_what_is_no_version(words: tuple[str, ...], matrix: Matrix) -> None:
    result = matrix(*words).expect(ExitCode.USAGE)
    assert result.codes == ["usage"]
    assert "releases" not in result.json


def _cut(wheel: Path) -> None:
    wheel.write_bytes(wheel.read_bytes()[:-40])


def _replace(wheel: Path) -> None:
    wheel.write_bytes(b"<html>not found</html>")


def _edit(wheel: Path) -> None:
    data = wheel.read_bytes()
    assert b"xgrammar" in data
    wheel.write_bytes(data.replace(b"xgrammar", b"ygrammar"))


@pytest.mark.parametrize("damage", [_cut, _replace, _edit])
def test_a_damaged_wheel(damage: Callable[[Path], None], matrix: Matrix, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", LATER, GOOD)
    damage(wheel)
    (problem,) = matrix(LATER).expect(ExitCode.ENVIRONMENT_REFUSED).json["diagnostics"]
    assert problem["code"] == "environment_refused"
    assert str(wheel) in problem["summary"]
    assert f"Delete {wheel}" in problem["remedy"]


def test_a_damaged_wheel_of_a_known_release_is_not_used(matrix: Matrix, tmp_path: Path) -> None:
    """Its digest is known: it is fetched anew, and without an index that is what is wrong."""
    make_wheel(tmp_path / "wheels", "0.5.11", GOOD)
    (problem,) = matrix("0.5.11").expect(ExitCode.ENVIRONMENT_REFUSED).json["diagnostics"]
    assert "could not be fetched" in problem["summary"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"says": "0.5.91"}, "is of 0.5.91, not of 0.5.90"),
        ({"record": "sglang/__init__.py,sha256=AAAA,0\n"}, "is not what the wheel's RECORD says"),
        ({"record": "sglang/__init__.py\n"}, "is damaged: line 1"),
    ],
    ids=["another version", "other bytes", "no record"],
)
def test_a_wheel_that_contradicts_itself(change: Mapping[str, str], said: str, matrix: Matrix, tmp_path: Path) -> None:
    make_wheel(tmp_path / "wheels", LATER, GOOD, **change)
    (problem,) = matrix(LATER).expect(ExitCode.ENVIRONMENT_REFUSED).json["diagnostics"]
    assert said in problem["summary"]


def test_a_cache_that_cannot_be_made(matrix: Matrix, tmp_path: Path) -> None:
    (tmp_path / "wheels").write_text("a file where a folder should be")
    refused = matrix("0.5.11")
    assert refused.exit_code in (ExitCode.USAGE, ExitCode.ENVIRONMENT_REFUSED)
    assert str(tmp_path / "wheels") in refused.json["diagnostics"][0]["summary"]


def test_junit_and_markdown_say_what_failed(matrix: Matrix, tmp_path: Path) -> None:
    make_wheel(tmp_path / "wheels", "0.5.90", GOOD)
    make_wheel(tmp_path / "wheels", "0.5.91", OTHER)
    files = ("--junit", tmp_path / "m.xml", "--markdown", tmp_path / "m.md")
    matrix("0.5.90", "-", "0.5.91", *files).expect(ExitCode.CONFLICT)
    suite = ElementTree.parse(tmp_path / "m.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "1", "1")
    assert [case.get("name") for case in suite if case.find("failure") is not None] == ["0.5.91:plan"]
    page = (tmp_path / "m.md").read_text("utf-8")
    assert "| 0.5.90 | `applies` | 1 pending |" in page
    assert "- **0.5.91** choice: cannot find" in page and SERVER_ARGS in page
    assert "| choice | list | pending | 0.5.90 |" in page
