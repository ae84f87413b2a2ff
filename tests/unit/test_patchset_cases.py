"""Every step of every bundled patchset proves itself: the cases and refusals that it carries are run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from ddtree_patcher import patchset, planner
from ddtree_patcher.codemods import AddFile
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Patchset, Refusal, Step
from ddtree_patcher.tree import Tree

STEPS = [(name, step) for name in patchset.bundled() for step in patchset.load(name).patchset.steps]


def alone(step: Step) -> Patchset:
    """A patchset of one step that requires nothing."""
    return Patchset("one", "1", "", "sglang", "sglang", "", (replace(step, requires=()),))


def planned(step: Step, before: Mapping[str, str]) -> planner.Draft:
    def nothing(path: str) -> bytes:
        raise FileNotFoundError(path)

    return planner.draft(alone(step), Tree(nothing, {path: text.encode() for path, text in before.items()}))


def cases() -> Iterator[object]:
    for name, step in STEPS:
        for case in step.cases:
            yield pytest.param(step, case, id=f"{name}-{step.id}-{case.variant}")


def refusals() -> Iterator[object]:
    for name, step in STEPS:
        for number, refusal in enumerate(step.refusals, 1):
            yield pytest.param(step, refusal, id=f"{name}-{step.id}-{number}-{refusal.outcome}")


@pytest.mark.parametrize(("step", "case"), list(cases()))
def test_before_becomes_after(step: Step, case: Case) -> None:
    draft = planned(step, case.before)
    (result,) = draft.steps
    assert not draft.diagnostics
    assert result.variant == case.variant
    variant = next(item for item in step.variants if item.name == case.variant)
    assert result.outcome is (StepOutcome.PENDING if variant.edits else StepOutcome.NOT_NEEDED)
    assert {item.path: item.desired.decode() for item in draft.files if not item.added} == dict(case.after)
    added = {edit.path: edit.content for edit in variant.edits if isinstance(edit, AddFile)}
    assert {item.path: item.desired for item in draft.files if item.added} == added


@pytest.mark.parametrize(("step", "case"), list(cases()))
def test_after_is_upstreamed(step: Step, case: Case) -> None:
    """On its own result a step has nothing to do: so it is told from a pristine file that upstream has changed."""
    made = {item.path: item.desired.decode() for item in planned(step, case.before).files}
    draft = planned(step, {**case.before, **made})
    assert [item.outcome for item in draft.steps] == [StepOutcome.UPSTREAMED if made else StepOutcome.NOT_NEEDED]
    assert draft.files == ()


@pytest.mark.parametrize(("step", "refusal"), list(refusals()))
def test_refused(step: Step, refusal: Refusal) -> None:
    draft = planned(step, refusal.before)
    assert [item.outcome for item in draft.steps] == [refusal.outcome]
    assert draft.files == ()
    assert draft.diagnostics and all(item.step == step.id and item.remedy for item in draft.diagnostics)
    assert draft.diagnostics[0].code == refusal.outcome


@pytest.mark.parametrize(("name", "step"), STEPS, ids=lambda item: getattr(item, "id", item))
def test_every_variant_is_proved_and_every_step_can_refuse(name: str, step: Step) -> None:
    assert {case.variant for case in step.cases} == {variant.name for variant in step.variants}
    assert step.refusals and step.summary and step.why
    assert all(refusal.outcome.is_conflict for refusal in step.refusals)


def test_the_bundled_patchsets() -> None:
    assert patchset.bundled() == ("ddtree", "rocm")


@pytest.mark.parametrize("name", patchset.bundled())
def test_a_bundled_patchset_is_named_like_its_folder(name: str) -> None:
    assert patchset.load(name).patchset.id == name
    assert patchset.describe(patchset.locate(name)).identity == patchset.load(name).identity
