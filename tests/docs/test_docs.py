"""The documents tell the truth: their links lead somewhere, and the patchset that they teach works."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import taught
from pages import DOCUMENTS, ROOT, anchors, links, name_of

from ddtree_patcher import patchset as patchsets
from ddtree_patcher.model import CheckOutcome, Tier
from ddtree_patcher.planner import draft
from ddtree_patcher.tree import Tree
from ddtree_patcher.verification.probes_runner import run_probe

SERVER_ARGS = "sglang/srt/server_args.py"
EXTERNAL = {"https", "http", "mailto"}


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(document: Path) -> None:
    """In the repository, to a file, and to a heading of it; elsewhere, to a host. Nothing is fetched."""
    for link in links(document):
        parts = urlsplit(link)
        if parts.scheme:
            assert parts.scheme in EXTERNAL and (parts.netloc or parts.path), f"{document.name} links to {link}"
            continue
        target = (document.parent / unquote(parts.path)).resolve() if parts.path else document
        assert target.is_relative_to(ROOT) and target.exists(), f"{document.name} links to {link}, which is not there"
        if parts.fragment and target.suffix == ".md":
            assert parts.fragment in anchors(target), f"{document.name} links to {link}: no such heading"


def test_every_document_can_be_reached() -> None:
    """From the README, link by link."""
    reached, open_ends = set(), [ROOT / "README.md"]
    while open_ends:
        document = open_ends.pop()
        if document in reached or document.suffix != ".md":
            continue
        reached.add(document)
        paths = [urlsplit(link).path for link in links(document) if not urlsplit(link).scheme]
        open_ends += [(document.parent / path).resolve() for path in paths if path]
    assert set(DOCUMENTS) <= reached, f"no link leads to {sorted(map(name_of, set(DOCUMENTS) - reached))}"


def test_the_tests_that_hold_a_guarantee_are_there() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", (ROOT / "docs" / "guarantees.md").read_text("utf-8"))
    assert len(named) > 50
    for path, name in named:
        assert re.search(rf"^ *(?:def|class) {name}" if name else "", (ROOT / path).read_text("utf-8"), flags=re.M), (
            path
        )


@pytest.fixture(params=[taught.one_shape, taught.two_shapes], ids=["first step", "last step"])
def acme(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The patchset of docs/writing-a-patchset.md, as its reader would save it."""
    return taught.save(tmp_path / "acme_grammar", request.param())


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
    program.write_text(taught.program())
    named, measured = run_probe(sys.executable, tmp_path / "site", program, [], Tier.E2E, 60.0)
    assert {named.outcome, measured.outcome} == {CheckOutcome.PASSED}
    assert (named.detail.partition(" [")[0], measured.detail.partition(" [")[0]) == ("one of 2", "2 sizes")
    assert [row["seconds"] for row in measured.rows] == [0.01, 1.0]


@pytest.mark.wheels
def test_the_taught_patchset_is_applied_to_a_real_wheel_and_reverted(
    acme: Path, tree: Callable[..., Path], run_cli: Callable[..., Any]
) -> None:
    site = tree("0.5.11")
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
