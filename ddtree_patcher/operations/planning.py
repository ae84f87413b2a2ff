"""``plan``: what ``apply`` would do, and the plan file that binds a later ``apply`` to it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from .. import graph
from ..errors import StalePlan, UsageError
from ..model import Diagnostic, ExitCode, FileState, FileStatus, PatchsetIdentity, Report, Severity, StepOutcome
from ..patchset import Patchset
from ..planner import Draft, draft
from ..pristine import Finding, Pristine, explain
from ..store import digest_in, identity_in, inside
from ..tree import Tree
from .alarms import python_files, watch
from .checkout import uncommitted
from .drift import Drift, diagnose
from .lookalikes import lookalikes
from .provenance import with_provenance
from .session import Session
from .standing import Judgement, Standing, build_of, judge_release
from .surroundings import through_links
from .undisturbed import PATIENCE, undisturbed

SCHEMA = "ddtree-patch.saved-plan/1"
_LIMIT = 4 * 1024 * 1024  # bytes of a plan file: a plan of thousands of files is far below


@dataclass(frozen=True)
class Selection:
    """Which steps: all, ``steps``, or everything up to ``through``; and whether unproved files may be the base."""

    steps: tuple[str, ...] = ()
    through: str = ""
    allow_drift: bool = False


@dataclass(frozen=True)
class Prepared:
    """A draft together with what is on disk."""

    draft: Draft
    look: Pristine
    selected: tuple[str, ...]
    files: tuple[FileState, ...]
    diagnostics: tuple[Diagnostic, ...]  # errors among them mean that it cannot be applied
    release: Judgement

    @property
    def applicable(self) -> bool:
        return not any(item.severity is Severity.ERROR for item in self.diagnostics)

    @property
    def pending(self) -> bool:
        """Whether anything on disk differs from what is planned."""
        return any(item.current_sha256 != item.desired_sha256 for item in self.files)


def prepare(session: Session, selection: Selection) -> Prepared:
    """Compute the draft on pristine bytes and set it against the disk."""
    patchset = session.loaded.patchset
    selected = graph.select(patchset.requirements, selection.steps, selection.through)
    session.refuse_unsuited()
    state = session.state()
    session.refuse_other_patchset(state)
    look = Pristine(session.installation, session.store, state, allow_drift=selection.allow_drift)
    made = draft(patchset, Tree(look.read), selected)
    build = build_of(session.installation, look, patchset.supports, patchset.strongest)
    release = judge_release(build, look.glance, allow_drift=selection.allow_drift)
    drift = _drift(session, look, release)
    diagnostics = [*_of_files(patchset, look, release, drift), *_of_steps(made, look)]
    diagnostics += lookalikes(session.installation.folder, [item.path for item in made.files if item.added])
    diagnostics += _uncommitted(session, made, look)
    told = {(item.code, item.path) for item in diagnostics}
    diagnostics += [item for item in _of_names(session, look, made) if (item.code, item.path) not in told]
    if len(selected) < len(patchset.steps):
        diagnostics.append(_partial(selected))
    if release.standing is not Standing.MIXED:
        diagnostics += release.diagnostics
    files = _files(made, look)
    return Prepared(_settled(made, files), look, selected, files, tuple(diagnostics), release)


def _drift(session: Session, look: Pristine, release: Judgement) -> Drift | None:
    """Why files are not as they were applied, or installed, unless that was accepted or is a mixture of releases."""
    if release.standing is Standing.MIXED:
        return None
    if look.state is not None:
        return diagnose(session, look.state, [look.find(entry.path) for entry in look.state.files])
    return None if look.allow_drift else diagnose(session, None, tuple(look.findings.values()))


def _of_files(patchset: Patchset, look: Pristine, release: Judgement, drift: Drift | None) -> list[Diagnostic]:
    """What is wrong with files as a whole; of another release's file nothing more is said than that."""
    mixed = release.diagnostics if release.standing is Standing.MIXED else ()
    remedy = drift.remedy if drift else ""
    cause = [drift.diagnostic()] if drift else []
    return [*mixed, *cause, *(_explained(item, look, remedy) for item in _unproved(patchset, look, release))]


def _explained(finding: Finding, look: Pristine, remedy: str) -> Diagnostic:
    if look.is_entry(finding.path):
        return explain(finding, remedy, patched=True)
    return through_links(explain(finding, remedy, patched=False), look.installation)


def _uncommitted(session: Session, made: Draft, look: Pristine) -> Iterator[Diagnostic]:
    """Somebody's edits of a source tree, which are never mixed with a patch: nobody could take them apart again."""
    if session.installation.is_editable:
        theirs = [item.path for item in made.files if not item.added and not look.is_entry(item.path)]
        for path in uncommitted(session.installation.folder, theirs):
            summary = f"{path} has edits that are not committed"
            yield Diagnostic("uncommitted", Severity.ERROR, summary, remedy="Commit or stash them first.", path=path)


def _unproved(patchset: Patchset, look: Pristine, release: Judgement) -> list[Finding]:
    ours = {path for step in patchset.steps for path in step.added_paths()}
    found = [item for item in look.unproved() if item.path not in ours or look.is_entry(item.path)]
    return [item for item in found if item.path not in release.mixed]


def _of_steps(made: Draft, look: Pristine) -> list[Diagnostic]:
    """Why steps cannot be planned. A file that was deleted is the whole reason why a step misses it."""
    deleted = {item.path for item in look.unproved() if item.status is FileStatus.MISSING}
    return [with_provenance(item, look) for item in made.diagnostics if item.path not in deleted]


def _of_names(session: Session, look: Pristine, made: Draft) -> list[Diagnostic]:
    """Uses of watched names without a verdict, and of names that only we should bring."""
    sentinels = session.loaded.patchset.sentinels
    if made.upstream_has_all:
        return []
    paths = python_files(session.installation, look.state) if sentinels else ()
    found = watch(sentinels, look.glance, paths, allow_drift=look.allow_drift)
    return [with_provenance(item, look) for item in found]


def plan(
    session: Session, selection: Selection, *, check: bool = False, with_diff: bool = False
) -> tuple[Report, Prepared]:
    """The report of ``plan``. ``check`` turns pending changes into exit code 3."""
    prepared = undisturbed(session, lambda: prepare(session, selection), patience=PATIENCE)
    code = ExitCode.OK if prepared.applicable else ExitCode.CONFLICT
    if code is ExitCode.OK and check and prepared.pending:
        code = ExitCode.CHANGES
    extra: dict[str, object] = {"selected": list(prepared.selected), "release": prepared.release.as_json()}
    if with_diff:
        extra["diff"] = diffs(prepared)
    report = session.report(
        "plan",
        code,
        steps=prepared.draft.steps,
        files=prepared.files,
        diagnostics=prepared.diagnostics,
        extra=extra,
    )
    return report, prepared


def diffs(prepared: Prepared) -> str:
    """The unified diff from pristine to planned, of every file."""
    import difflib

    chunks: list[str] = []
    for item in prepared.draft.files:
        before = item.pristine.decode("utf-8").splitlines(keepends=True)
        after = item.desired.decode("utf-8").splitlines(keepends=True)
        source = "/dev/null" if item.added else f"a/{item.path}"
        for line in difflib.unified_diff(before, after, source, f"b/{item.path}"):
            chunks.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(chunks)


def saved(session: Session, prepared: Prepared, selection: Selection) -> bytes:
    """A plan file: digests only, so that nothing in it has to be trusted."""
    value = {
        "schema": SCHEMA,
        "patchset": asdict(session.identity),
        "version": session.installation.version,
        "selected": list(prepared.selected),
        "allow_drift": selection.allow_drift,
        "read": dict(prepared.draft.read),
        "files": {
            item.path: {"current": item.current_sha256, "desired": item.desired_sha256} for item in prepared.files
        },
    }
    return json.dumps(value, indent=1, sort_keys=True).encode() + b"\n"


@dataclass(frozen=True)
class SavedPlan:
    """A plan file, read."""

    path: str
    patchset: PatchsetIdentity
    version: str
    selection: Selection
    read: Mapping[str, str]
    files: Mapping[str, Mapping[str, str]]


def load_plan(path: str) -> SavedPlan:
    """Read a plan file; refuses what is not one."""
    remedy = "Make a new one with `ddtree-patch plan --out FILE`."
    try:
        with open(path, "rb") as file:
            data = file.read(_LIMIT + 1)
    except OSError as error:
        raise UsageError(f"the plan {path} cannot be read: {error.strerror}", remedy=remedy) from error
    if len(data) > _LIMIT:
        raise UsageError(f"{path} is too large to be a plan", remedy=remedy)
    try:
        value: Any = json.loads(data)
        if not isinstance(value, dict):
            raise ValueError("it holds no JSON object")
        if value.get("schema") != SCHEMA:
            raise ValueError(f"its schema is {value.get('schema')!r}, not {SCHEMA!r}")
        return SavedPlan(
            path,
            identity_in(value["patchset"]),
            str(value["version"]),
            Selection(steps=tuple(map(str, value["selected"])), allow_drift=bool(value["allow_drift"])),
            {inside(name): digest_in(digest) for name, digest in value["read"].items()},
            {
                inside(name): {"current": digest_in(item["current"]), "desired": digest_in(item["desired"])}
                for name, item in value["files"].items()
            },
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise UsageError(f"{path} is not a plan, or only a part of one: {what}", remedy=remedy) from error


_NEW_PLAN = "Make a new plan with `ddtree-patch plan --out FILE`."


def refuse_other(session: Session, plan: SavedPlan) -> None:
    """Raise :class:`StalePlan` for a plan of another patchset: its steps would mean nothing here."""
    if plan.patchset != session.identity:
        mine, its = session.identity, plan.patchset
        raise StalePlan(
            f"{plan.path} was made with patchset {its.id} {its.version} ({its.digest[:12]}), "
            f"and this is {mine.id} {mine.version} ({mine.digest[:12]})",
            remedy=_NEW_PLAN,
            path=plan.path,
        )


def refuse_stale(plan: SavedPlan, prepared: Prepared) -> None:
    """Raise :class:`StalePlan`, naming the file, unless the plan still says what would happen."""
    remedy = _NEW_PLAN
    for path, digest in plan.read.items():
        if prepared.draft.read.get(path) != digest:
            raise StalePlan(f"{path} is not the file that {plan.path} was made for", remedy=remedy, path=path)
    now = {item.path: item for item in prepared.files}
    for path in sorted({*plan.files, *now}):
        item, planned = now.get(path), plan.files.get(path)
        if item is None or planned is None or item.desired_sha256 != planned["desired"]:
            raise StalePlan(f"{plan.path} plans another content of {path}", remedy=remedy, path=path)
        if item.current_sha256 not in (planned["current"], planned["desired"]):
            raise StalePlan(f"{path} changed since {plan.path} was made", remedy=remedy, path=path)


def _settled(made: Draft, files: Sequence[FileState]) -> Draft:
    """Steps whose files are all on disk already are ``already``, not ``pending``."""
    done = {item.path for item in files if item.current_sha256 == item.desired_sha256}
    steps = tuple(
        replace(step, outcome=StepOutcome.ALREADY)
        if step.outcome is StepOutcome.PENDING and done.issuperset(step.files)
        else step
        for step in made.steps
    )
    return replace(made, steps=steps)


def _files(made: Draft, look: Pristine) -> tuple[FileState, ...]:
    """Every file that is planned, or that an earlier application changed and this plan gives back."""
    planned = {item.path: item for item in made.files}
    before = {entry.path for entry in look.state.files} if look.state and made.files else set()
    states = []
    for path in sorted({*planned, *before}):
        finding, item = look.find(path), planned.get(path)
        states.append(
            FileState(
                path=path,
                status=_status(finding, item.desired_sha256 if item else ""),
                added=item.added if item else not finding.pristine_sha256,
                pristine_sha256=finding.pristine_sha256,
                desired_sha256=item.desired_sha256 if item else finding.pristine_sha256,
                current_sha256=finding.current_sha256,
            )
        )
    return tuple(states)


def _status(finding: Finding, desired: str) -> FileStatus:
    return FileStatus.PATCHED if desired and finding.current_sha256 == desired else finding.status


def _partial(selected: Sequence[str]) -> Diagnostic:
    return Diagnostic(
        "partial",
        Severity.WARNING,
        f"only {len(selected)} steps are selected: {', '.join(selected)}",
        detail="A part of the steps leaves an importable tree, and not a working feature.",
    )
