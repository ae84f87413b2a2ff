"""docs/primitives.md is what the generator makes of the primitives today."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import primitives_reference
from ddtree_patcher import codemods
from primitives_reference import PAGE, Undocumented, comments, primitives, prose, reference, refused


def test_the_page_is_what_the_generator_makes() -> None:
    assert PAGE.read_text("utf-8") == reference(), "run `make docs`"


def test_every_primitive_is_on_it() -> None:
    text = PAGE.read_text("utf-8")
    assert len(primitives()) >= 13
    for name in [*primitives(), "Anchor"]:
        assert f"\n# {name}\n" in text


def test_the_edits_of_the_patchsets_are_primitives() -> None:
    from ddtree_patcher import patchset

    steps = [step for name in patchset.bundled() for step in patchset.load(name).patchset.steps]
    used = {type(edit).__name__ for step in steps for variant in step.variants for edit in variant.edits}
    assert used and used <= set(primitives())


def test_what_is_not_documented_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Bare:
        path: str

    @dataclass(frozen=True)
    class Silent:
        """Says nothing of its field."""

        path: str

    with pytest.raises(Undocumented, match="no docstring"):
        prose(Bare)
    with pytest.raises(Undocumented, match=r"Silent\.path does not say"):
        comments(Silent)
    monkeypatch.setattr(primitives_reference, "EXAMPLES", {})
    with pytest.raises(Undocumented, match="AddBranch has no example"):
        reference()


def test_an_example_that_is_not_refused_is_no_refusal() -> None:
    insert = codemods.InsertAfter("f.py", codemods.Anchor("x = 1"), "y = 2\n")
    with pytest.raises(Undocumented, match="is not refused"):
        refused(insert, "x = 1\n")
