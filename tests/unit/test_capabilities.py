"""The plug-in that records which tests show what: a run that passes is recorded, whole; any other is not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from capabilities import SCHEMA, TITLES, record
from ddtree_patcher.operations.capabilities import load_capabilities

TESTS = Path(__file__).resolve().parents[1]
GUIDE = (TESTS.parent / "docs" / "writing-a-patchset.md").read_text("utf-8")
TAUGHT = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.S)[-1]
BROKEN = TAUGHT.replace("_obeyed(version): ...", "_obeyed(version): assert version == '0.5.17'")

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """``run(text, *options)``: pytest with the plug-in on one file of tests, as their author would save it."""

    def get(text: str, *options: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "tests" / "e2e" / "test_grammar.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = shows: as in the project\n")
        command = [sys.executable, "-m", "pytest", "-p", "capabilities", "-p", "no:cacheprovider"]
        return subprocess.run(
            [*command, "--record-capabilities", "out.json", *options, "tests"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(TESTS)},
            capture_output=True,
            text=True,
            check=False,
        )

    return get


@pytest.mark.parametrize("options", [(), ("-n", "2"), ("--collect-only",)], ids=["alone", "xdist", "collected"])
def test_the_taught_marks_give_the_taught_record(run: Run, options: tuple[str, ...], tmp_path: Path) -> None:
    done = run(TAUGHT, *options)
    assert done.returncode == 0, done.stdout
    (shown,) = re.findall(r"```json\n(.*?)```", GUIDE, flags=re.S)
    value = json.loads((tmp_path / "out.json").read_text("utf-8"))
    (row,) = [row for row in value["capabilities"] if row["shown"] or row["refused"]]
    assert {"schema": value["schema"], "capabilities": [row]} == json.loads(shown)
    assert "3 capabilities of releases are recorded" in done.stdout or options == ("--collect-only",)


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_run_in_which_a_test_fails_records_nothing(run: Run, options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "out.json").write_text("as it was")
    done = run(BROKEN, *options)
    assert done.returncode == 1
    assert (tmp_path / "out.json").read_text() == "as it was"
    assert "out.json is as it was: not every test passed" in done.stdout


def test_a_test_that_was_not_run_shows_nothing(run: Run, tmp_path: Path) -> None:
    assert run(TAUGHT.replace("(version): ...", "(version): pytest.skip()", 1)).returncode == 0
    (grammar, *_) = load_capabilities(tmp_path / "out.json")
    assert (grammar.shown, list(grammar.refused)) == ({}, ["0.5.11"])


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"grammar")', '"grammer")', "which is none of grammar, logprobs"),
        ('shows("grammar")', "shows()", "the mark is shows(capability, refused=False)"),
        ("version", "release", "it has no parameter `version`"),
    ],
    ids=["unknown", "no capability", "no release"],
)
def test_a_mark_that_says_nothing_is_refused(run: Run, before: str, after: str, said: str, tmp_path: Path) -> None:
    done = run(TAUGHT.replace(before, after))
    assert done.returncode != 0
    assert said in done.stdout + done.stderr
    assert "INTERNALERROR" not in done.stdout + done.stderr
    assert not (tmp_path / "out.json").exists()


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    claims = [("overlap", False, "0.5.9", "b"), ("overlap", False, "0.5.14", "a"), ("overlap", True, "0.5.14", "c")]
    file = tmp_path / "record.json"
    file.write_text(json.dumps(record(claims)))
    found = {item.id: item for item in load_capabilities(file)}
    assert {name: item.title for name, item in found.items()} == TITLES
    assert list(found["overlap"].shown.items()) == [("0.5.9", ("b",)), ("0.5.14", ("a",))]
    assert found["overlap"].refused == {"0.5.14": ("c",)}
    assert record(claims) == record(reversed(claims))


def row(**change: Any) -> dict[str, Any]:
    good = {"id": "x", "title": "X", "shown": {}, "refused": {}, **change}
    return {"schema": SCHEMA, "capabilities": [{name: value for name, value in good.items() if value is not None}]}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("{", "Expecting"),
        ("[]", "list indices"),
        ("{}", "it has no 'schema'"),
        (json.dumps({"schema": "other/1"}), "its schema is 'other/1'"),
        (json.dumps(row(title=None)), "it has no 'title'"),
        (json.dumps(row(shown={"0.5.11": "a test"})), "which is no list of tests"),
        (json.dumps(row(shown={"0.5.x": []})), "0.5.x"),
        (None, "No such file"),
    ],
)
def test_what_is_no_record_is_refused(value: str | None, said: str, tmp_path: Path, run_here: Any) -> None:
    file = tmp_path / "record.json"
    if value is not None:
        file.write_text(value)
    refused = run_here("matrix", "--capabilities", file, "0.5.11").expect(2)
    (problem,) = refused.json["diagnostics"]
    assert str(file) in problem["summary"] and said in problem["summary"] and problem["remedy"]
