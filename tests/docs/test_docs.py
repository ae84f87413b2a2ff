"""The documents tell the truth: their links lead somewhere, and the patchset that they teach works."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ddtree_patcher import patchset as patchsets
from ddtree_patcher.model import CheckOutcome, Tier
from ddtree_patcher.planner import draft
from ddtree_patcher.tree import Tree
from ddtree_patcher.verification.probes_runner import run_probe

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md")])
SERVER_ARGS = "sglang/srt/server_args.py"


def slug(heading: str) -> str:
    """The fragment that Markdown viewers give to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    text = re.sub(r"```.*?```", "", document.read_text("utf-8"), flags=re.S)
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    for link in links:
        name, _, fragment = link.partition("#")
        target = (document.parent / name).resolve() if name else document
        assert target.exists(), f"{document.name} links to {link}"
        if fragment:
            headings = re.findall(r"^#+ (.*)$", target.read_text("utf-8"), flags=re.M)
            assert fragment in {slug(heading) for heading in headings}, f"{document.name} links to {link}"


def test_the_tests_that_hold_a_guarantee_are_there() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", (ROOT / "docs" / "guarantees.md").read_text("utf-8"))
    assert len(named) > 50
    for path, name in named:
        assert re.search(rf"^ *(?:def|class) {name}" if name else "", (ROOT / path).read_text("utf-8"), flags=re.M), (
            path
        )


def taught() -> tuple[str, str]:
    """The patchset and the program of docs/writing-a-patchset.md."""
    text = (ROOT / "docs" / "writing-a-patchset.md").read_text("utf-8")
    patchset, program, _tests = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    return patchset, program


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    """The patchset of docs/writing-a-patchset.md, as its reader would save it."""
    folder = tmp_path / "acme_grammar"
    folder.mkdir()
    (folder / "__init__.py").write_text(taught()[0])
    return folder


def test_the_taught_patchset_proves_its_cases(acme: Path) -> None:
    patchset = patchsets.load(str(acme)).patchset
    (step,) = patchset.steps

    def planned(files: dict[str, str]) -> Any:
        def read(path: str) -> bytes:
            if path not in files:
                raise FileNotFoundError(path)
            return files[path].encode()

        return draft(patchset, Tree(read))

    for case in step.cases:
        result = planned(dict(case.before))
        assert {item.path: item.desired.decode() for item in result.files} == dict(case.after)
    for refusal in step.refusals:
        assert planned(dict(refusal.before)).steps[0].outcome is refusal.outcome


def test_the_taught_program_gives_what_is_said_of_it(tmp_path: Path) -> None:
    package = tmp_path / "site" / "sglang" / "srt"
    package.mkdir(parents=True)
    (package / "server_args.py").write_text('GRAMMAR_BACKEND_CHOICES = ["xgrammar", "acme"]\n')
    program = tmp_path / "program.py"
    program.write_text(taught()[1])
    named, measured = run_probe(sys.executable, tmp_path / "site", program, [], Tier.E2E, 60.0)
    assert {named.outcome, measured.outcome} == {CheckOutcome.PASSED}
    assert (named.detail.partition(" [")[0], measured.detail.partition(" [")[0]) == ("one of 2", "2 sizes")
    assert [row["seconds"] for row in measured.rows] == [0.01, 1.0]


@pytest.mark.wheels
@pytest.mark.parametrize("version", ["0.5.11", "0.5.13.post1"])
def test_the_taught_patchset_is_applied_to_a_real_wheel_and_reverted(
    acme: Path, tree: Callable[..., Path], run_cli: Callable[..., Any], version: str
) -> None:
    site = tree(version)
    before = (site / SERVER_ARGS).read_bytes()
    options = ("--root", site, "--patchset", acme)
    applied = run_cli(*options, "apply", "--verify", "static").expect(0)
    assert applied.outcomes == {"grammar-choice": "applied"}
    after = (site / SERVER_ARGS).read_bytes()
    assert after.replace(b'"llguidance", "acme"', b'"llguidance"') == before
    refused = run_cli("--root", site, "apply", "--verify", "static").expect(4)
    assert refused.codes == ["other_patchset"]
    run_cli(*options, "verify", "--tier", "static").expect(0)
    run_cli(*options, "revert").expect(0)
    assert (site / SERVER_ARGS).read_bytes() == before
