"""Attestations as bytes: what in-toto asks of a Statement, and what is refused when one is read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtree_patcher.attestation import LIMIT, PREDICATE, STATEMENT, Attestation, from_bytes, load, to_bytes
from ddtree_patcher.errors import UsageError
from ddtree_patcher.model import PatchsetIdentity, StepOutcome, StepResult, Tier

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs" / "schema" / "attestation-1.json").read_bytes())
A, B, C = "a" * 64, "b" * 64, "c" * 64
GOOD = Attestation(
    subjects={"pkg/b.py": A, "pkg/a.py": B},
    distribution="pkg",
    version="1.0.post1",
    pristine={"pkg/b.py": C},
    patchset=PatchsetIdentity("patch", "2", C),
    steps=(StepResult("one", StepOutcome.ALREADY, "list"), StepResult("two", StepOutcome.NOT_NEEDED, "free")),
    checks={"static": ("compiles:pkg/a.py", "step:one")},
    drift={"pkg/edited.py": A, "pkg/deleted.py": ""},
)


def statement() -> dict[str, Any]:
    made = json.loads(to_bytes(GOOD))
    assert isinstance(made, dict)
    return made


def test_what_is_written_is_read() -> None:
    assert from_bytes(to_bytes(GOOD)) == GOOD


_paths = st.lists(st.from_regex(r"[a-zé_]{1,5}", fullmatch=True), min_size=1, max_size=3).map("/".join)
_digests = st.from_regex(r"[0-9a-f]{64}", fullmatch=True)
_words = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._+!-]{0,8}", fullmatch=True)
_attestations = st.builds(
    Attestation,
    subjects=st.dictionaries(_paths, _digests, min_size=1, max_size=4),
    distribution=_words,
    version=_words,
    pristine=st.dictionaries(_paths, _digests, max_size=4),
    patchset=st.builds(PatchsetIdentity, _words, _words, _digests),
    steps=st.lists(
        st.builds(StepResult, _words, st.sampled_from([StepOutcome.ALREADY, StepOutcome.UPSTREAMED]), _words),
        max_size=3,
    ).map(tuple),
    checks=st.dictionaries(
        st.sampled_from([tier.value for tier in Tier]), st.lists(_words, min_size=1, max_size=3).map(tuple), max_size=2
    ),
    whole=st.booleans(),
    drift=st.dictionaries(_paths, st.one_of(_digests, st.just("")), max_size=3),
    tool=_words,
)


@given(_attestations)
def test_whatever_is_attested_is_a_statement_and_is_read_again(made: Attestation) -> None:
    data = to_bytes(made)
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(data))
    assert from_bytes(data) == made


def test_the_schema_is_one_and_speaks_of_this_statement() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["_type"] == {"const": STATEMENT}
    assert SCHEMA["properties"]["predicateType"] == {"const": PREDICATE}


def test_it_is_what_in_toto_asks_of_a_statement() -> None:
    """spec/v1: ``statement.md``, ``field_types.md`` (TypeURI), ``resource_descriptor.md``, ``digest_set.md``."""
    made = statement()
    assert list(made) == ["_type", "subject", "predicateType", "predicate"]
    assert made["_type"] == "https://in-toto.io/Statement/v1"
    scheme, rest = re.fullmatch(r"([a-z][a-z0-9+.-]*):(.+)", made["predicateType"]).groups()  # type: ignore[union-attr]
    assert scheme == "urn" and rest == rest.lower() and rest.endswith("-v1")  # normalised, with a version
    names = [item["name"] for item in made["subject"]]
    assert names == sorted(set(names)), "names are unique in a statement"
    assert all(re.fullmatch(r"[0-9a-f]{64}", item["digest"]["sha256"]) for item in made["subject"])
    assert isinstance(made["predicate"], dict)


def test_the_bytes_do_not_depend_on_the_order_in_which_files_were_found() -> None:
    other = {name: GOOD.subjects[name] for name in sorted(GOOD.subjects)}
    assert list(other) != list(GOOD.subjects)
    data = to_bytes(GOOD)
    assert data == to_bytes(Attestation(**{**_fields(GOOD), "subjects": other})) and data.endswith(b"}\n")


def _fields(made: Attestation) -> dict[str, Any]:
    return {name: getattr(made, name) for name in Attestation.__slots__}


def test_fields_and_digests_that_are_not_known_are_ignored() -> None:
    """in-toto: consumers must ignore unrecognised fields and algorithms, so that a minor version may add some."""
    made = statement()
    made["extension"] = made["predicate"]["base"]["extension"] = {"of": "others"}
    made["subject"][0]["digest"]["sha512"] = "0" * 128
    made["subject"][0]["annotations"] = {"reviewed": True}
    jsonschema.Draft202012Validator(SCHEMA).validate(made)
    assert from_bytes(json.dumps(made).encode()) == GOOD


# --- what is refused ---------------------------------------------------------------------------------------------


def _file(name: object, digest: object = A) -> dict[str, object]:
    return {"name": name, "digest": {"sha256": digest}}


Change = Callable[[dict[str, Any]], object]
FOREIGN: dict[str, tuple[Change, str]] = {
    "no type": (lambda it: it.pop("_type"), "its _type is None, not 'https://in-toto.io/Statement/v1'"),
    "version 0.1": (lambda it: it.update(_type="https://in-toto.io/Statement/v0.1"), "its _type is "),
    "another predicate": (
        lambda it: it.update(predicateType="https://slsa.dev/provenance/v1"),
        "its predicateType is 'https://slsa.dev/provenance/v1'",
    ),
    "no predicate": (lambda it: it.pop("predicate"), "it has no 'predicate'"),
    "a predicate as a list": (lambda it: it.update(predicate=[]), ""),
    "no base": (lambda it: it["predicate"].pop("base"), "it has no 'base'"),
    "no subject": (lambda it: it.pop("subject"), "it has no 'subject'"),
    "no subjects": (lambda it: it.update(subject=[]), "it has no subject"),
    "subjects as an object": (lambda it: it.update(subject={}), "is no list"),
    "a subject twice": (lambda it: it["subject"].append(_file("pkg/a.py", C)), "it names the subject pkg/a.py twice"),
    "a base file twice": (
        lambda it: it["predicate"]["base"]["files"].append(_file("pkg/b.py")),
        "it names the base file pkg/b.py twice",
    ),
    "a subject without a name": (lambda it: it["subject"].append({"digest": {"sha256": A}}), "it has no 'name'"),
    "a subject without a digest": (lambda it: it["subject"].append({"name": "pkg/c.py"}), "it has no 'digest'"),
    "a digest of another kind": (
        lambda it: it["subject"].append({"name": "pkg/c.py", "digest": {"sha1": "0" * 40}}),
        "it has no 'sha256'",
    ),
    "a short digest": (lambda it: it["subject"].append(_file("pkg/c.py", "a" * 63)), "is no SHA-256 digest"),
    "a long digest": (lambda it: it["subject"].append(_file("pkg/c.py", "a" * 65)), "is no SHA-256 digest"),
    "a digest in capitals": (lambda it: it["subject"].append(_file("pkg/c.py", "A" * 64)), "is no SHA-256 digest"),
    "a digest of a patchset": (
        lambda it: it["predicate"]["patchset"].update(digest={"sha256": ""}),
        "is no SHA-256 digest",
    ),
    "a path that leaves": (lambda it: it["subject"].append(_file("../../etc/passwd")), "leaves the tree"),
    "a path that leaves inside": (lambda it: it["subject"].append(_file("pkg/../../x")), "leaves the tree"),
    "a path from the root": (lambda it: it["subject"].append(_file("/etc/passwd")), "leaves the tree"),
    "a path of Windows": (lambda it: it["subject"].append(_file("..\\x")), "leaves the tree"),
    "a folder": (lambda it: it["subject"].append(_file("pkg/")), "leaves the tree"),
    "a path of no text": (lambda it: it["subject"].append(_file(7)), "is no line of text"),
    "an escape sequence": (lambda it: it["subject"].append(_file("pkg/\x1b[2J.py")), "is no line of text"),
    "a base file that leaves": (
        lambda it: it["predicate"]["base"]["files"].append(_file("../x")),
        "leaves the tree",
    ),
    "drift that leaves": (
        lambda it: it["predicate"]["base"]["acceptedDrift"].update({"../x": A}),
        "leaves the tree",
    ),
    "an unknown outcome": (lambda it: it["predicate"]["steps"][0].update(outcome="fine"), "'fine' is not a valid"),
    "steps as a number": (lambda it: it["predicate"].update(steps=3), "is no list"),
    "checks as a list": (lambda it: it["predicate"].update(checksPassed=[]), ""),
}
UNREADABLE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is not an attestation of a patched tree"),
    "not JSON": (b"hello\n", "is not an attestation"),
    "not UTF-8": (b"\xff\0", "is not an attestation"),
    "null": (b"null", "it holds no JSON object"),
    "a list": (b"[]", "it holds no JSON object"),
    "nested without end": (b"[" * 200_000, "is not an attestation"),
    "oversized": (b" " * (LIMIT + 1), "is too large"),
    "a key twice": (b'{"_type": "a", "_type": "b"}', "it has '_type' twice in one object"),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_a_statement_of_another_kind_is_refused_with_a_remedy(case: str) -> None:
    change, says = FOREIGN[case]
    made = statement()
    change(made)
    with pytest.raises(UsageError) as refused:
        from_bytes(json.dumps(made).encode(), path="a.json")
    assert refused.value.summary.startswith("a.json is not an attestation of a patched tree: ")
    assert says in refused.value.summary and refused.value.summary.isprintable()
    assert "status --attest" in refused.value.remedy


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_is_no_statement_is_refused_with_a_remedy(case: str, tmp_path: Path) -> None:
    data, says = UNREADABLE[case]
    path = tmp_path / "a.json"
    path.write_bytes(data)
    with pytest.raises(UsageError) as refused:
        load(path)
    assert says in refused.value.summary and str(path) in refused.value.summary
    assert "status --attest" in refused.value.remedy


def test_a_signed_one_is_known_for_what_it_is() -> None:
    envelope = {"payloadType": "application/vnd.in-toto+json", "payload": "e30=", "signatures": []}
    with pytest.raises(UsageError, match="it is a DSSE envelope") as refused:
        from_bytes(json.dumps(envelope).encode())
    assert "signature" in refused.value.remedy and "payload" in refused.value.remedy


@pytest.mark.parametrize("place", ["nowhere/a.json", "."])
def test_a_file_that_cannot_be_read_is_named(place: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read") as refused:
        load(tmp_path / place)
    assert refused.value.remedy


@pytest.mark.parametrize("case", FOREIGN)
def test_the_schema_refuses_the_same(case: str) -> None:
    """But for what a schema cannot say: that names are unique, whatever their digests."""
    made = statement()
    FOREIGN[case][0](made)
    valid = jsonschema.Draft202012Validator(SCHEMA).is_valid(made)
    assert valid == (case in ("a subject twice", "a base file twice"))
