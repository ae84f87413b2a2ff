"""What an upgrade means for a step, and which changes are its business."""

from __future__ import annotations

import pytest

from ddtree_patcher import patchset as patchsets
from ddtree_patcher.codemods import AddField, AddFile, Anchor, InsertAfter
from ddtree_patcher.model import Diagnostic, Severity, StepOutcome, StepProspect, StepResult
from ddtree_patcher.operations.prospects import concerns, outlooks, prospect, touched
from ddtree_patcher.patchset import Contract, Patchset, Step, Variant
from ddtree_patcher.snapshot_compare import ChangeKind, SymbolChange
from ddtree_patcher.survival import bundled

A, B, MADE = "pkg/a.py", "pkg/b.py", "pkg/made.py"
OLD = Variant("old", edits=(AddField(A, "Args", "new: int = 1", after="size"),))
NEW = Variant(
    "new",
    edits=(InsertAfter(B, Anchor("x = 1", scope=""), "y = 2\n"), AddFile(MADE, b"")),
    contract=(Contract(B, "helper", ("n",)),),
)
FREE = Variant("free")
STEP = Step("one", "it is so", "", (OLD, NEW, FREE), contract=(Contract(A, "Args.check"),))
PENDING, NOT_NEEDED, UPSTREAMED, MISSING = (
    StepOutcome.PENDING,
    StepOutcome.NOT_NEEDED,
    StepOutcome.UPSTREAMED,
    StepOutcome.ANCHOR_MISSING,
)


@pytest.mark.parametrize(
    ("here", "variant", "there", "word"),
    [
        (PENDING, "old", "old", StepProspect.STILL_FITS),
        (PENDING, "new", "old", StepProspect.FITS_BY_ANOTHER_VARIANT),
        (PENDING, "new", None, StepProspect.FITS),
        (PENDING, "new", "", StepProspect.FITS),
        (PENDING, "new", "free", StepProspect.NEEDED_SINCE),
        (NOT_NEEDED, "free", "old", StepProspect.NO_LONGER_NEEDED),
        (NOT_NEEDED, "free", "free", StepProspect.NOT_NEEDED),
        (NOT_NEEDED, "free", None, StepProspect.NOT_NEEDED),
        (UPSTREAMED, "new", "old", StepProspect.UPSTREAMED),
        (UPSTREAMED, "new", None, StepProspect.UPSTREAMED),
        *((word, "", "old", StepProspect.NEEDS_WORK) for word in StepOutcome if word.is_conflict),
    ],
)
def test_one_word_for_each_pair(here: StepOutcome, variant: str, there: str | None, word: StepProspect) -> None:
    assert prospect(STEP, StepResult("one", here, variant), there) is word


def test_it_touches_what_the_variants_of_both_releases_edit_and_call() -> None:
    here = StepResult("one", PENDING, "new")
    both = {(A, "Args.size"), (A, "Args.check"), (B, "<module>"), (B, "helper")}
    assert touched(STEP, here, "old") == both
    assert touched(STEP, here, "new") == both - {(A, "Args.size")}


def test_where_the_past_is_not_known_it_touches_what_any_variant_does() -> None:
    names = touched(STEP, StepResult("one", NOT_NEEDED, "free"), None)
    assert names == {(A, "Args.size"), (A, "Args.check"), (B, "<module>"), (B, "helper")}


def test_a_step_that_has_nothing_to_do_on_either_touches_nothing() -> None:
    assert touched(STEP, StepResult("one", NOT_NEEDED, "free"), "free") == frozenset()


def test_a_step_without_a_place_is_about_what_it_touched_there() -> None:
    assert touched(STEP, StepResult("one", MISSING), "old") == {(A, "Args.size"), (A, "Args.check")}


@pytest.mark.parametrize(
    ("change", "mine"),
    [
        (SymbolChange(ChangeKind.CHANGED, A, "Args.size"), True),
        (SymbolChange(ChangeKind.CHANGED, A, "Args.size#2"), True),  # defined twice
        (SymbolChange(ChangeKind.CHANGED, A, "Args.sizes"), False),
        (SymbolChange(ChangeKind.CHANGED, B, "Args.size"), False),
        (SymbolChange(ChangeKind.REFORMATTED, A, "Args"), False),
        (SymbolChange(ChangeKind.MOVED, A, "Args.size", new_path=B, new_qualname="Other.size"), True),
        (SymbolChange(ChangeKind.MOVED, B, "Other.size", new_path=A, new_qualname="Args.size"), True),
        (SymbolChange(ChangeKind.MOVED, B, "Other.size", new_path=B, new_qualname="Args.size"), False),
        (SymbolChange(ChangeKind.FILE_REMOVED, A), True),
        (SymbolChange(ChangeKind.FILE_ADDED, B), False),
    ],
)
def test_which_changes_concern_a_step(change: SymbolChange, mine: bool) -> None:
    assert concerns(change, frozenset({(A, "Args.size")})) is mine


def test_the_reason_of_a_conflict_is_that_of_its_step() -> None:
    patchset = Patchset("p", "1", "", "pkg", "pkg", ">=1", (STEP, Step("two", "", "", (FREE,))))
    steps = (StepResult("one", MISSING), StepResult("two", NOT_NEEDED, "free"))
    other = Diagnostic("anchor_missing", Severity.ERROR, "not this one", step="three")
    why = Diagnostic("anchor_missing", Severity.ERROR, "one: cannot find x", step="one", path=A, line=3)
    first, second = outlooks(patchset, steps, (other, why), {"one": "old"}.get)
    assert (first.prospect, first.reason, second.prospect, second.reason) == (
        StepProspect.NEEDS_WORK,
        why,
        StepProspect.NOT_NEEDED,
        None,
    )


def test_a_step_that_waits_says_for_which() -> None:
    """A step that is held back by what it needs has no diagnostic of its own."""
    waiting = Step("two", "", "", (NEW,), requires=("one",))
    patchset = Patchset("p", "1", "", "pkg", "pkg", ">=1", (STEP, waiting))
    steps = (StepResult("one", MISSING), StepResult("two", StepOutcome.BLOCKED_BY, "new"))
    reason = outlooks(patchset, steps, (), {}.get)[1].reason
    assert reason is not None and reason.summary == "two waits for one"


def test_a_variant_that_the_patchset_no_longer_has_is_not_believed() -> None:
    patchset = Patchset("p", "1", "", "pkg", "pkg", ">=1", (STEP,))
    (found,) = outlooks(patchset, (StepResult("one", PENDING, "new"),), (), {"one": "renamed"}.get)
    assert (found.prospect, found.there) == (StepProspect.FITS, None)
    assert found.touches == touched(STEP, StepResult("one", PENDING, "new"), None)


def test_what_is_remembered_of_the_bundled_patchset_is_about_its_steps_and_variants() -> None:
    """That each release fares so is proved where there are wheels."""
    loaded = patchsets.load()
    steps = bundled(loaded.folder).steps
    assert set(steps) == set(loaded.patchset.by_id)
    for name, releases in steps.items():
        assert set(releases.values()) <= {variant.name for variant in loaded.patchset.by_id[name].variants}, name
