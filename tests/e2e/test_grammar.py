"""A grammar is obeyed at every node: what comes out is what comes out without speculation under the same grammar."""

from __future__ import annotations

import re
from typing import Any

import pytest
from scripts import requests, tree_flags

from conftest import Engines
from sglang_releases import WITH_GRAMMAR

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

# The models choose among a, b and c. Each regex forbids what they would choose again and again, and none is at its end
# within the tokens that are asked for: what comes after a grammar's end differs between DFLASH and no speculation.
REGEXES = {"r0": "((ab)|(bca?)|(cc)){20}", "r1": "(a(b|c)){20}", "r3": "((abc)|(acb)|d){20}"}
BEGINNINGS = {"r0": "((ab)|(bca?)|(cc))*[abc]?", "r1": "(a(b|c))*a?", "r3": "((abc)|(acb)|d)*(a[bc]?)?"}


@pytest.fixture
def run(engines: Engines) -> Any:
    def constrained(version: str, algorithm: str, *flags: str, regexes: dict[str, str] = REGEXES) -> dict[str, Any]:
        value = engines(version).call(
            "grammar.constrained",
            {"SGLANG_DDTREE_SELF_CHECK": "0"},
            algorithm=algorithm,
            requests=requests(tokens=14),
            regexes=regexes,
            flags=list(flags),
        )
        assert isinstance(value, dict)
        return value

    return constrained


@pytest.mark.shows("grammar")
@pytest.mark.parametrize("version", WITH_GRAMMAR)
def test_constrained_tokens_are_those_of_plain_decoding(version: str, run: Any) -> None:
    """Three requests of a batch have a grammar, one has none."""
    plain = run(version, "NONE")
    tree = run(version, "DDTREE", *tree_flags(16, 4))
    assert tree["outputs"] == plain["outputs"]
    assert tree["faults"] == []
    assert any(length > 1 for lengths in tree["accept_lengths"].values() for length in lengths)
    for name, beginning in BEGINNINGS.items():
        assert re.fullmatch(beginning, "".join(chr(ord("a") + token) for token in tree["outputs"][name]))
    assert tree["outputs"] != run(version, "NONE", regexes={})["outputs"], "the grammars changed nothing"


@pytest.mark.parametrize("version", [WITH_GRAMMAR[0], WITH_GRAMMAR[-1]])
def test_dflash_gives_the_same_under_the_same_grammars(version: str, run: Any) -> None:
    assert run(version, "DFLASH")["outputs"] == run(version, "DDTREE", *tree_flags(16, 4))["outputs"]
