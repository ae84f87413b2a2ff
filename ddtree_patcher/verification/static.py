"""The static tier: what can be known by reading. Needs neither the package nor torch to be importable."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..codemods import AddStampedFile
from ..codemods.source import BOM
from ..contract import breaches
from ..errors import SourceError
from ..installation import Installation
from ..model import CheckOutcome, CheckResult, StepOutcome, StepResult, Tier
from ..patchset import Patchset, Variant
from ..planner import unmet
from ..pristine import foreign_files
from ..tree import Tree
from .names import Import, Resolver, imports_of, module_name

_NEWLINE = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True)
class Subject:
    """What is verified: a patched tree, the pristine one beneath it, and which files and steps changed it."""

    patchset: Patchset
    steps: tuple[StepResult, ...]
    tree: Tree  # as it is, or will be
    pristine: Tree
    paths: tuple[str, ...]  # changed and added files
    folders: frozenset[str]  # every folder of the package, as a path: what may be a namespace package


def static_checks(subject: Subject) -> tuple[CheckResult, ...]:
    """Compilation, style, imported names, contracts, postconditions: what files themselves say, wherever they lie."""
    python = [path for path in subject.paths if path.endswith(".py")]
    now, before = Resolver(subject.tree, subject.folders), Resolver(subject.pristine, subject.folders)
    checks: list[tuple[str, Callable[[], Iterable[str]]]] = []
    checks += [(f"compiles:{path}", partial(_compile, subject.tree, path)) for path in python]
    checks += [(f"style:{path}", partial(_style, subject, path)) for path in python]
    checks += [(f"imports:{path}", partial(_imports, subject, path, now, before)) for path in python]
    for step in subject.steps:
        variant = _variant(subject.patchset, step)
        if variant is not None and step.outcome is not StepOutcome.NOT_NEEDED:
            checks.append((f"contract:{step.id}", partial(_contract, subject, step, variant)))
            checks.append((f"step:{step.id}", partial(_step, subject, step, variant)))
            stamped = [edit for edit in variant.edits if isinstance(edit, AddStampedFile)]
            checks += [(f"stamp:{edit.path}", partial(_stamp, subject.tree, edit)) for edit in stamped]
    return tuple(_timed(name, check) for name, check in checks)


def nothing_else_changed(installation: Installation, ours: Iterable[str], drift: Mapping[str, str]) -> CheckResult:
    """Every file that RECORD proves is still what RECORD says, but for ``ours`` and for ``drift`` (by digest)."""
    known = {*ours, installation.record_path}

    def others() -> Iterator[str]:
        for path, digest in foreign_files(installation, known).items():
            if drift.get(path) != digest:
                yield f"{path} is not what RECORD says" if digest else f"{path} is missing"

    return _timed("nothing-else-changed", others)


def folders_of(installation: Installation) -> frozenset[str]:
    """Every folder of the package, relative to the folder that holds it."""
    base = Path(installation.folder)
    return frozenset(
        os.path.relpath(parent, base) for parent, _, _ in os.walk(installation.root) if "__pycache__" not in parent
    )


def _timed(name: str, check: Callable[[], Iterable[str]]) -> CheckResult:
    begun = time.perf_counter()
    try:
        problems = list(check())
    except SourceError as error:
        problems = [error.summary]
    outcome = CheckOutcome.FAILED if problems else CheckOutcome.PASSED
    return CheckResult(Tier.STATIC, name, outcome, "; ".join(problems[:10]), time.perf_counter() - begun)


def _compile(tree: Tree, path: str) -> Iterator[str]:
    data = tree.get(path)
    if data is None:
        yield f"{path} is missing"
        return
    try:
        compile(data, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        yield f"{path} does not compile: {error}"


def _style(subject: Subject, path: str) -> Iterator[str]:
    """A changed file has the line ends, the byte-order mark and the last line that it had (patch-package #191)."""
    before, after = subject.pristine.get(path), subject.tree.get(path)
    if before is None or after is None:
        return  # added, or missing
    if other := {*_NEWLINE.findall(after)} - {*(_NEWLINE.findall(before) or [b"\n"])}:
        yield f"{path} has other line ends than before: {', '.join(map(ascii, sorted(other)))}"
    if before.startswith(BOM) != after.startswith(BOM):
        yield f"{path} has another byte-order mark than before"
    if before.endswith((b"\r", b"\n")) != after.endswith((b"\r", b"\n")) and before.removeprefix(BOM):
        yield f"{path} ends in another way than before"


def _imports(subject: Subject, path: str, now: Resolver, before: Resolver) -> Iterator[str]:
    """Names that cannot be imported now and could before; upstream's own dead imports are not ours to judge."""
    name, is_package = module_name(path), path.endswith("/__init__.py")

    def unresolved(tree: Tree, resolver: Resolver) -> list[Import]:
        source = tree.source(path)
        found = imports_of(source.tree, subject.patchset.package, name, is_package=is_package) if source else ()
        return [item for item in found if resolver.unresolved(item)]

    bad = unresolved(subject.tree, now)
    dead = {(item.module, item.name) for item in unresolved(subject.pristine, before)} if bad else set()
    for item in sorted(bad, key=lambda item: item.line):
        if (item.module, item.name) not in dead:
            what = f"{item.module} has no {item.name}" if item.name else f"there is no {item.module}"
            yield f"line {item.line}: {what}"


def _contract(subject: Subject, step: StepResult, variant: Variant) -> Iterator[str]:
    declared = subject.patchset.by_id[step.id].contract
    for breach in breaches((*declared, *variant.contract), subject.tree):
        yield breach.reason


def _step(subject: Subject, step: StepResult, variant: Variant) -> Iterator[str]:
    yield from unmet(subject.patchset.by_id[step.id], variant, subject.tree)


def _stamp(tree: Tree, edit: AddStampedFile) -> Iterator[str]:
    """The file that says which patchset this is says this one: a server that is asked must not name another."""
    data = tree.get(edit.path)
    yield from [f"{edit.path} is missing"] if data is None else edit.misfits(data)


def _variant(patchset: Patchset, step: StepResult) -> Variant | None:
    known = patchset.by_id.get(step.id)
    return next((item for item in known.variants if item.name == step.variant), None) if known else None
