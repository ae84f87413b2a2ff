"""What is known of a step's past, and what is said of a release by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddtree_patcher import survival
from ddtree_patcher.errors import UsageError
from ddtree_patcher.model import History, ReleaseResult, ReleaseVerdict, StepOutcome, StepResult
from ddtree_patcher.patchset import locate
from ddtree_patcher.survival import Survival, survived

KNOWN = Survival("acme", {"s": {"1.0": "old", "1.1": "new", "1.2": "", "1.3": "", "1.10": "new"}})


@pytest.mark.parametrize(
    ("version", "published", "last", "first"),
    [
        ("1.1", False, "1.1", "1.1"),  # a known release, edited
        ("1.1", True, "1.0", "1.1"),  # the wheel itself
        ("1.2", False, "1.1", "1.2"),
        ("1.3", False, "1.1", "1.2"),  # the first known one in which it fails comes before this one
        ("1.4.dev3", False, "1.1", "1.2"),
        ("1.11", False, "1.10", "1.11"),  # versions are no text
        ("0.9", False, "", ""),
        ("main", False, "", ""),
        ("", False, "", ""),
    ],
)
def test_history(version: str, published: bool, last: str, first: str) -> None:
    assert KNOWN.history("s", version, published=published) == History(last, first)


def test_nothing_is_said_of_a_step_that_nobody_knows() -> None:
    assert KNOWN.history("other", "1.1") == History() and KNOWN.variant("other", "1.1") == ""


def test_a_variant_goes_back_where_it_came_before_and_does_not_come_next() -> None:
    assert KNOWN.goes_back("s", "old", "1.1") and not KNOWN.goes_back("s", "old", "1.0")
    assert KNOWN.goes_back("s", "new", "1.2") and not KNOWN.goes_back("s", "new", "1.3")  # 1.10 has it again
    assert not KNOWN.goes_back("s", "unheard of", "1.2")


def test_it_is_read_as_it_was_written() -> None:
    assert survival.from_bytes(survival.to_bytes(KNOWN)) == KNOWN


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"schema": "x"}', survival.to_bytes(KNOWN).replace(b"1.10", b"no")]
)
def test_what_is_no_survival_file_is_refused(data: bytes) -> None:
    with pytest.raises(UsageError, match=r"f\.json is no survival file") as caught:
        survival.from_bytes(data, path="f.json")
    assert "matrix --survival" in caught.value.remedy


def test_made_of_what_matrix_found() -> None:
    steps = (
        StepResult("fits", StepOutcome.PENDING, "v"),
        StepResult("lost", StepOutcome.ANCHOR_MISSING, "v"),
        StepResult("waits", StepOutcome.BLOCKED_BY),
    )
    made = survived("acme", [ReleaseResult("1.0", ReleaseVerdict.CONFLICT, steps=steps)])
    assert made.steps == {"fits": {"1.0": "v"}, "lost": {"1.0": ""}, "waits": {"1.0": ""}}


def test_only_a_patchset_that_comes_with_the_tool_has_a_past(tmp_path: Path) -> None:
    ours = survival.bundled(locate("ddtree"))
    assert ours.patchset == "ddtree" and ours.variant("enum", "0.5.11") == "no_registry"
    assert survival.bundled(tmp_path / "ddtree") == Survival()
