"""The static tier: what can be known by reading. Needs neither the package nor torch to be importable."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..contract import breaches
from ..errors import SourceError
from ..installation import Installation
from ..model import CheckOutcome, CheckResult, StepOutcome, StepResult, Tier
from ..patchset import Patchset, Variant
from ..planner import unmet
from ..pristine import foreign_files
from ..tree import Tree
from .names import Import, Resolver, imports_of, module_name


@dataclass(frozen=True)
class Subject:
    """What is verified: a patched tree, the pristine one beneath it, and which files and steps changed it."""

    patchset: Patchset
    steps: tuple[StepResult, ...]
    tree: Tree  # as it is, or will be
    pristine: Tree
    paths: tuple[str, ...]  # changed and added files
    installation: Installation
    drift: Mapping[str, str]  # foreign files that were accepted, by digest
    given_back: tuple[str, ...] = ()  # files that are still changed on disk, and will not be


def static_checks(subject: Subject) -> tuple[CheckResult, ...]:
    """Compilation, imported names, contracts, postconditions, and that nothing else changed."""
    python = [path for path in subject.paths if path.endswith(".py")]
    folders = _folders(subject.installation)
    now, before = Resolver(subject.tree, folders), Resolver(subject.pristine, folders)
    checks: list[tuple[str, Callable[[], Iterable[str]]]] = []
    checks += [(f"compiles:{path}", partial(_compile, subject.tree, path)) for path in python]
    checks += [(f"imports:{path}", partial(_imports, subject, path, now, before)) for path in python]
    for step in subject.steps:
        variant = _variant(subject.patchset, step)
        if variant is not None and step.outcome is not StepOutcome.NOT_NEEDED:
            checks.append((f"contract:{step.id}", partial(_contract, subject, step, variant)))
            checks.append((f"step:{step.id}", partial(_step, subject, step, variant)))
    checks.append(("nothing-else-changed", partial(_others, subject)))
    return tuple(_timed(name, check) for name, check in checks)


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


def _imports(subject: Subject, path: str, now: Resolver, before: Resolver) -> Iterator[str]:
    """Names that cannot be imported now and could before; upstream's own dead imports are not ours to judge."""
    name, is_package = module_name(path), path.endswith("/__init__.py")

    def unresolved(tree: Tree, resolver: Resolver) -> list[Import]:
        source = tree.source(path)
        found = imports_of(source.tree, subject.installation.package, name, is_package=is_package) if source else ()
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


def _others(subject: Subject) -> Iterator[str]:
    """Every file that RECORD proves and that we did not change is still what RECORD says."""
    ours = {*subject.paths, *subject.given_back, subject.installation.record_path}
    for path, digest in foreign_files(subject.installation, ours).items():
        if subject.drift.get(path) != digest:
            yield f"{path} is not what RECORD says" if digest else f"{path} is missing"


def _variant(patchset: Patchset, step: StepResult) -> Variant | None:
    known = patchset.by_id.get(step.id)
    return next((item for item in known.variants if item.name == step.variant), None) if known else None


def _folders(installation: Installation) -> frozenset[str]:
    """Every folder below the package, as paths: what may be a namespace package."""
    base = Path(installation.folder)
    return frozenset(
        os.path.relpath(parent, base) for parent, _, _ in os.walk(installation.root) if "__pycache__" not in parent
    )
