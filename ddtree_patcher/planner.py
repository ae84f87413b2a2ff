"""From pristine bytes and a patchset to a draft: what every file would be, and what became of every step.

Pure but for the reading: the same pristine bytes and the same patchset always give the same draft, whatever is on disk
at the moment, so an updated patchset, a dropped step or a second ``apply`` is the same computation.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from . import graph
from .codemods import AddFile, AlreadySo, Codemod, Found, Location, NotFound, Splice, apply_splices
from .contract import breaches
from .digest import sha256
from .errors import PatchError, PatchsetError, SourceError
from .model import Diagnostic, Severity, StepOutcome, StepResult
from .patchset import Patchset, Step, Variant
from .spans import Ledger
from .tree import Tree
from .variants import NoVariant, choose_variant


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One file before and after. ``pristine`` is empty bytes for a file that the patchset adds."""

    path: str
    added: bool
    pristine: bytes = field(repr=False)
    desired: bytes = field(repr=False)

    @property
    def pristine_sha256(self) -> str:
        return "" if self.added else sha256(self.pristine)

    @property
    def desired_sha256(self) -> str:
        return sha256(self.desired)


@dataclass(frozen=True)
class Draft:
    """What applying the selected steps to pristine bytes gives."""

    steps: tuple[StepResult, ...]  # in order; pending, upstreamed, not_needed or a conflict
    files: tuple[PlannedFile, ...]  # only those that change; empty when a step is in conflict
    diagnostics: tuple[Diagnostic, ...]
    read: Mapping[str, str]  # digest of every pristine file that the plan depends on ("": absent)
    tree: Tree = field(repr=False)  # the desired files over the pristine ones

    @property
    def conflicts(self) -> tuple[StepResult, ...]:
        return tuple(step for step in self.steps if step.outcome.is_conflict)

    @property
    def upstream_has_all(self) -> bool:
        """Whether there is nothing to add. Then nothing that we add can fall into a wrong branch either."""
        return all(step.outcome in (StepOutcome.UPSTREAMED, StepOutcome.NOT_NEEDED) for step in self.steps)


def draft(patchset: Patchset, pristine: Tree, selected: Sequence[str] | None = None) -> Draft:
    """Plan the selected steps (default: all) on pristine files. Never raises for what the code looks like."""
    requires = patchset.requirements
    names = [name for name in graph.order(requires) if selected is None or name in selected]
    planning = _Planning(patchset, pristine)
    for name in names:
        planning.take(patchset.by_id[name])
    planning.refuse_unordered_overlaps()
    planning.refuse_half_upstreamed()
    failed = any(result.outcome.is_conflict for result in planning.results.values())
    return Draft(
        steps=tuple(planning.results.values()),
        files=() if failed else planning.changed_files(),
        diagnostics=tuple(planning.diagnostics),
        read=pristine.digests(),
        tree=planning.tree,
    )


def unmet(step: Step, variant: Variant, tree: Tree) -> list[str]:
    """What is not as the step promises, in words; empty when its postcondition holds."""
    reasons = [f"does not hold: {shape}" for shape in step.postcondition if not shape.holds(tree)]
    for edit in variant.edits:
        if isinstance(edit, AddFile):
            if tree.get(edit.path) != edit.content:
                reasons.append(f"{edit.path} is not the file that was added")
            continue
        source = tree.source(edit.path)
        if source is None or not isinstance(edit.locate(source), AlreadySo):
            reasons.append(
                f"{edit.path}: {type(edit).__name__} in {', '.join(edit.symbols()) or 'the module'} is not in effect"
            )
    return reasons


class _Planning:
    """The files as they are while one step after the other is taken."""

    def __init__(self, patchset: Patchset, pristine: Tree) -> None:
        self.patchset = patchset
        self.pristine = pristine
        self.tree = Tree(lambda path: _bytes_of(pristine, path))
        self.results: dict[str, StepResult] = {}
        self.diagnostics: list[Diagnostic] = []
        self.ledger = Ledger()
        self.added: dict[str, bytes] = {}
        self.places: dict[str, tuple[str, int]] = {}  # step -> where it was found to be upstream already

    def take(self, step: Step) -> None:
        blockers = [name for name in step.requires if name in self.results and self.results[name].outcome.is_conflict]
        if blockers:
            self._end(
                step, StepOutcome.BLOCKED_BY, f"{step.id} waits for {', '.join(blockers)}, which cannot be applied"
            )
            return
        try:
            self._carry_out(step)
        except SourceError as error:
            self._end(
                step,
                StepOutcome.NOT_ROUNDTRIPPABLE,
                error.summary,
                path=error.path,
                line=error.line,
                remedy=error.remedy,
            )
        except (PatchError, OSError):
            raise
        except Exception as error:  # the boundary around a patchset's own code
            raise PatchsetError(
                f"step {step.id!r} cannot be planned: {type(error).__name__}: {error}",
                detail=traceback.format_exc(),
                remedy="This is a fault of the patchset, not of the installation; nothing was written.",
            ) from error

    def _carry_out(self, step: Step) -> None:
        variant = choose_variant(step, self.tree)
        if isinstance(variant, NoVariant):
            detail, line = self._near(variant.path, variant.near) if variant.near else ("", 0)
            self._end(
                step, variant.outcome, f"{step.id}: {variant.reason}", detail=detail, path=variant.path, line=line
            )
            return
        if not variant.edits:
            self._end(step, StepOutcome.NOT_NEEDED, variant=variant.name)
            return
        for breach in breaches((*step.contract, *variant.contract), self.tree):
            outcome, path = StepOutcome.PRECONDITION_FAILED, breach.contract.path
            self._end(step, outcome, f"{step.id}: {breach.reason}", path=path, line=self._line(path, breach.line))
            return
        found = [(edit, self._locate(edit)) for edit in variant.edits]
        problems = [(edit, item) for edit, item in found if isinstance(item, NotFound)]
        if problems:
            self._refuse(step, variant, problems)
            return
        there = [(edit, item) for edit, item in found if isinstance(item, AlreadySo)]
        if not there:
            self._perform(step, variant, found)
            return
        path = there[0][0].path
        line = self._line(path, there[0][1].line)
        if len(there) == len(found):
            self.places[step.id] = (path, line)
            self._end(step, StepOutcome.UPSTREAMED, variant=variant.name)
        else:
            self._half(step, variant, path, line)

    def _locate(self, edit: Codemod | AddFile) -> Location:
        if isinstance(edit, AddFile):
            existing = self.tree.get(edit.path)
            if existing is None:
                return Found(Splice(0, 0, edit.content), 1)
            if existing == edit.content:
                return AlreadySo(1)
            return NotFound(StepOutcome.HALF_UPSTREAMED, "")
        source = self.tree.source(edit.path)
        if source is None:
            return NotFound(StepOutcome.FILE_MISSING, "")
        return edit.locate(source)

    def _perform(self, step: Step, variant: Variant, found: Sequence[tuple[Codemod | AddFile, Location]]) -> None:
        by_path: dict[str, list[Splice]] = {}
        for edit, item in found:
            assert isinstance(item, Found)
            if isinstance(edit, AddFile):
                self.added[edit.path] = edit.content
                self.tree.put(edit.path, edit.content)
            else:
                by_path.setdefault(edit.path, []).append(item.splice)
        for path, splices in by_path.items():
            self._splice(step, path, splices)
        if reasons := unmet(step, variant, self.tree):
            raise PatchsetError(
                f"step {step.id!r} ({variant.name}) does not reach its own postcondition: {'; '.join(reasons)}",
                remedy="This is a fault of the patchset, not of the installation; nothing was written.",
            )
        files = tuple(dict.fromkeys(edit.path for edit, _ in found))
        self.results[step.id] = StepResult(step.id, StepOutcome.PENDING, variant.name, files, step.summary)

    def _splice(self, step: Step, path: str, splices: list[Splice]) -> None:
        if path in self.added:
            raise PatchsetError(
                f"step {step.id!r} edits {path}, which this patchset adds",
                remedy="Give the file its whole content in the step that adds it.",
                path=path,
            )
        data = self.tree.get(path)
        assert data is not None
        self.ledger.record(step.id, path, splices)
        self.tree.put(path, apply_splices(data, splices))

    def refuse_unordered_overlaps(self) -> None:
        requires = self.patchset.requirements
        for path, first, second in self.ledger.overlaps():
            if not graph.ordered(requires, first, second):
                raise PatchsetError(
                    f"steps {first!r} and {second!r} change the same place of {path} and neither requires the other",
                    remedy="Let one require the other, so that their order is written down.",
                    path=path,
                )

    def refuse_half_upstreamed(self) -> None:
        """A feature of which upstream has some steps and not others is half there: guessing would register it twice.

        One feature is what requirements join; of steps that have nothing to do with each other upstream may have some.
        """
        for feature in graph.connected(self.patchset.requirements):
            made = [item for item in self.results.values() if item.id in feature]
            if not any(item.outcome is StepOutcome.PENDING for item in made):
                continue
            for item in [item for item in made if item.outcome is StepOutcome.UPSTREAMED]:
                path, line = self.places[item.id]
                step = self.patchset.by_id[item.id]
                self._half(step, next(v for v in step.variants if v.name == item.variant), path, line)

    def changed_files(self) -> tuple[PlannedFile, ...]:
        files = [PlannedFile(path, True, b"", content) for path, content in self.added.items()]
        for path in self.ledger.paths:
            before, after = self.pristine.get(path), self.tree.get(path)
            assert before is not None and after is not None
            files.append(PlannedFile(path, False, before, after))
        return tuple(sorted(files, key=lambda item: item.path))

    def _refuse(self, step: Step, variant: Variant, problems: Sequence[tuple[Codemod | AddFile, NotFound]]) -> None:
        said: set[tuple[str, str]] = set()
        for edit, item in problems:
            if (edit.path, item.wanted) in said:  # several edits look for the same place
                continue
            said.add((edit.path, item.wanted))
            summary = f"{step.id}: {_VERB[item.outcome]} {item.wanted} in {edit.path}"
            detail, line = self._near(edit.path, item)
            remedy = _REMEDY[item.outcome]
            if not item.wanted and isinstance(edit, AddFile):
                summary = f"{step.id}: {edit.path} is there already, and is not the file that this patchset adds"
                detail, remedy = "", "Move that file away: this patchset brings its own."
            elif not item.wanted:
                summary, detail = f"{step.id}: there is no {edit.path}", ""
            outcome, path = item.outcome, edit.path
            self._end(step, outcome, summary, detail=detail, remedy=remedy, path=path, line=line, variant=variant.name)

    def _half(self, step: Step, variant: Variant, path: str, line: int) -> None:
        self._end(
            step,
            StepOutcome.HALF_UPSTREAMED,
            f"{step.id}: {path} already has a part of this patchset",
            path=path,
            line=line,
            variant=variant.name,
            remedy=_REMEDY[StepOutcome.HALF_UPSTREAMED],
        )

    def _near(self, path: str, item: NotFound) -> tuple[str, int]:
        """The places that came near, in words, and the line of the first; 0 when there is none."""
        places = [(self._line(path, place.line), place) for place in item.candidates]
        lines = [f"line {line}: {place.text}{_percent(place.score)}" for line, place in places]
        detail = "\n".join(["Candidates:", *lines]) if lines else "Nothing in the file comes near."
        return detail, places[0][0] if places else 0

    def _line(self, path: str, line: int) -> int:
        """A line of the file as planned so far, as a line of the pristine one: that is what people can open."""
        if not line or path not in self.ledger.paths:
            return line
        now, before = self.tree.source(path), self.pristine.source(path)
        assert now is not None and before is not None
        return before.line_at(self.ledger.pristine_offset(path, now.line_starts[line - 1]))

    def _end(
        self,
        step: Step,
        outcome: StepOutcome,
        summary: str = "",
        *,
        detail: str = "",
        remedy: str = "",
        path: str = "",
        line: int = 0,
        variant: str = "",
    ) -> None:
        self.results[step.id] = StepResult(step.id, outcome, variant, (), step.summary)
        if outcome.is_conflict:
            # What blocks a step is an error and says so itself; six steps that wait for it must not drown it.
            waits = outcome is StepOutcome.BLOCKED_BY
            severity = Severity.NOTE if waits else Severity.ERROR
            remedy = "" if waits else remedy or _REMEDY.get(outcome, "See docs/statuses.md.")
            said = Diagnostic(outcome.value, severity, summary, detail, remedy, step.id, path, line)
            if not any(replace(item, step=step.id) == said for item in self.diagnostics):  # of a file, by another step
                self.diagnostics.append(said)


_DIFF = "Run `ddtree-patch diff` to see what differs from the nearest known release"
_VERB = {
    StepOutcome.ANCHOR_MISSING: "cannot find",
    StepOutcome.ANCHOR_AMBIGUOUS: "needs",
    StepOutcome.HALF_UPSTREAMED: "expected",
    StepOutcome.FILE_MISSING: "cannot find",
}
_REMEDY = {
    StepOutcome.ANCHOR_MISSING: f"{_DIFF}. The step has no variant for this shape.",
    StepOutcome.ANCHOR_AMBIGUOUS: f"{_DIFF}; the tool never guesses between places.",
    StepOutcome.HALF_UPSTREAMED: "Another patch or a newer release has a part of this: remove it, or use it.",
    StepOutcome.PRECONDITION_FAILED: f"{_DIFF}; the inserted code would call something that is not there.",
    StepOutcome.FILE_MISSING: "If it was deleted, reinstall SGLang; else this release is not supported.",
}


def _bytes_of(tree: Tree, path: str) -> bytes:
    data = tree.get(path)
    if data is None:
        raise FileNotFoundError(path)
    return data


def _percent(score: float) -> str:
    return "" if score == 1.0 else f"  ({score:.0%} alike)"
