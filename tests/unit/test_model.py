"""The closed vocabularies: the words in JSON are the headings of the documentation."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path

import pytest

from ddtree_patcher import errors
from ddtree_patcher.model import (
    CheckOutcome,
    DriftCause,
    ExitCode,
    FileStatus,
    InstallationStatus,
    ReleaseVerdict,
    StepOutcome,
    StepProspect,
    Tier,
    Word,
)
from ddtree_patcher.snapshot_compare import ChangeKind

STATUSES = Path(__file__).resolve().parents[2] / "docs" / "statuses.md"
VOCABULARIES = (
    StepOutcome,
    FileStatus,
    InstallationStatus,
    DriftCause,
    CheckOutcome,
    ReleaseVerdict,
    StepProspect,
    ChangeKind,
)
WORDS = [
    *(word.value for kind in VOCABULARIES for word in kind),
    *(code.symbol for code in ExitCode),
]


@pytest.mark.parametrize("word", sorted(set(WORDS)))
def test_every_word_has_a_heading(word: str) -> None:
    headings = [line.lstrip("#").strip() for line in STATUSES.read_text("utf-8").splitlines() if line.startswith("## ")]
    assert headings.count(word) == 1


def subclasses(kind: type) -> list[type]:
    return [found for child in kind.__subclasses__() for found in (child, *subclasses(child))]


@pytest.mark.parametrize("kind", subclasses(errors.PatchError), ids=lambda kind: kind.__name__)
def test_every_error_speaks_a_documented_word(kind: type[errors.PatchError]) -> None:
    assert f"## {kind.code}\n" in STATUSES.read_text("utf-8")
    (diagnostic,) = kind("what", remedy="do", path="f.py").diagnostics()
    assert (diagnostic.code, diagnostic.summary, diagnostic.remedy, diagnostic.path) == (
        kind.code,
        "what",
        "do",
        "f.py",
    )
    assert kind.exit_code is not ExitCode.OK


def test_the_numbers_of_the_exit_codes() -> None:
    assert {code.symbol: int(code) for code in ExitCode} == {
        "ok": 0,
        "error": 1,
        "usage": 2,
        "changes": 3,
        "conflict": 4,
        "verification_failed": 5,
        "environment_refused": 6,
        "locked": 7,
        "interrupted": 8,
    }


def test_which_outcomes_are_conflicts() -> None:
    assert {word for word in StepOutcome if not word.is_conflict} == {
        StepOutcome.APPLIED,
        StepOutcome.PENDING,
        StepOutcome.ALREADY,
        StepOutcome.UPSTREAMED,
        StepOutcome.NOT_NEEDED,
    }


def test_tiers_go_up() -> None:
    assert [tier.rank for tier in (Tier.STATIC, Tier.IMPORT, Tier.SMOKE, Tier.E2E)] == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", subclasses(Word), ids=lambda kind: kind.__name__)
def test_a_word_is_its_text_everywhere(kind: type[Enum]) -> None:
    for word in kind:
        assert str(word) == f"{word}" == word.value and json.dumps(word) == f'"{word.value}"'
        assert word.value == word.name.lower()
