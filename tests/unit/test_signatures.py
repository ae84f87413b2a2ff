"""What differs between two signatures, in words."""

from __future__ import annotations

import ast

import pytest

from ddtree_patcher.fingerprint import SymbolKind, signature_text
from ddtree_patcher.signatures import differences


def of(before: str, after: str, kind: SymbolKind = SymbolKind.FUNCTION) -> list[str]:
    """The differences of two headers, as they stand in code."""
    old, new = (ast.parse(text).body[0] for text in (before, after))
    return list(differences(kind, signature_text(old), signature_text(new)))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("a", "a, b", ["parameter b added, required"]),
        ("a", "a, b=1", ["parameter b added, default 1"]),
        ("a", "a, *, b: int = 1", ["parameter b added, default 1, by keyword only"]),
        ("a", "b, /, a", ["parameter b added, required, by position only"]),
        ("a, b", "a", ["parameter b is gone"]),
        ("a=1", "a=2", ["default of a: 1 → 2"]),
        ("a", "a=None", ["a has a default now: None"]),
        ("a=None", "a", ["a is required now (its default was None)"]),
        ("a: int", "a: str", ["type of a: int → str"]),
        ("a", "a: str", ["type of a: (nothing said) → str"]),
        ("a, b", "a, *, b", ["b is passed by keyword only now"]),
        ("a, b", "b, a", ["the parameters have another order"]),
        ("a", "a, *args, **kwargs", ["parameter *args added", "parameter **kwargs added"]),
        ("*args", "", ["parameter *args is gone"]),
        ("a, b=1, *, c", "a, b=1, *, c", []),
    ],
)
def test_of_parameters(before: str, after: str, said: list[str]) -> None:
    assert of(f"def f({before}): ...", f"def f({after}): ...") == said


def test_of_what_is_returned_and_of_async() -> None:
    assert of("def f() -> int: ...", "async def f() -> str: ...") == ["returns int → str", "is async now"]
    assert of("async def f(): ...", "def f(): ...") == ["is no longer async"]
    assert of("def f() -> int: ...", "def f(): ...") == ["returns int → (nothing said)"]


def test_several_are_all_said() -> None:
    said = of("def f(a, b=1, c=2) -> int: ...", "def f(b=3, *, d) -> int: ...", SymbolKind.METHOD)
    assert said == [
        "parameter a is gone",
        "parameter c is gone",
        "parameter d added, required, by keyword only",
        "default of b: 1 → 3",
    ]


def test_of_bases() -> None:
    said = of("class C(A, metaclass=M): ...", "class C(B): ...", SymbolKind.CLASS)
    assert said == ["base A is gone", "base metaclass=M is gone", "base B added"]
    assert of("class C(A, B): ...", "class C(B, A): ...", SymbolKind.CLASS) == ["(A, B) → (B, A)"]


def test_of_fields() -> None:
    assert of("a: int", "a: str = 'x'", SymbolKind.FIELD) == ["type: int → str", "has a default now"]
    assert of("a: int = 1", "a: int", SymbolKind.FIELD) == ["has no default any more"]


def test_text_that_is_no_signature_is_one_difference() -> None:
    assert differences(SymbolKind.FUNCTION, "(a", "(b)") == ("(a → (b)",)
    assert differences(SymbolKind.METHOD, "", "(self)") == ("nothing → (self)",)
