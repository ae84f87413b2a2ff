"""What a patchset is, and how one is loaded from a folder, from this distribution or from an entry point.

Loading a patchset imports its Python code. Nothing is loaded that the command line did not name (or the built-in
default), and ``describe`` reads a patchset's identity without running any of it.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

from . import graph, resources
from .errors import PatchsetError, UsageError
from .model import PatchsetIdentity, StepOutcome, Tier

if TYPE_CHECKING:
    from .codemods import AddFile, Codemod
    from .sentinels import Sentinels
    from .shape import Shape

DEFAULT = "ddtree"
ENTRY_POINTS = "ddtree_patch.patchsets"


@dataclass(frozen=True, slots=True)
class Contract:
    """An upstream definition that inserted code calls, with the parameters that it passes by name or position."""

    path: str
    name: str  # dotted inside the file
    parameters: tuple[str, ...] = ()  # empty for what is not called


@dataclass(frozen=True, slots=True)
class Case:
    """A proof: with these files, this variant gives those. Only the files that change are in ``after``."""

    variant: str
    before: Mapping[str, str]
    after: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A proof: with these files, the step ends in this outcome and changes nothing."""

    before: Mapping[str, str]
    outcome: StepOutcome


@dataclass(frozen=True, slots=True)
class Variant:
    """How a step is done for one shape of the code. No edits: this shape needs none."""

    name: str
    when: tuple[Shape, ...] = ()  # all must hold; empty: always
    edits: tuple[Codemod | AddFile, ...] = ()
    contract: tuple[Contract, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One intent, how it is carried out on each shape of the code, and what proves it."""

    id: str
    summary: str  # the intent, in one line
    why: str
    variants: tuple[Variant, ...]
    requires: tuple[str, ...] = ()
    contract: tuple[Contract, ...] = ()
    postcondition: tuple[Shape, ...] = ()  # beside "every edit is so", which always counts
    cases: tuple[Case, ...] = ()
    refusals: tuple[Refusal, ...] = ()

    def added_paths(self) -> frozenset[str]:
        """The files that this step adds."""
        from .codemods import AddFile

        edits = [edit for variant in self.variants for edit in variant.edits]
        return frozenset(edit.path for edit in edits if isinstance(edit, AddFile))

    def paths(self) -> frozenset[str]:
        """Every file that this step looks at, changes or adds."""
        shapes = [*self.postcondition, *(shape for variant in self.variants for shape in variant.when)]
        edits = [edit for variant in self.variants for edit in variant.edits]
        contracts = [*self.contract, *(item for variant in self.variants for item in variant.contract)]
        named = [path for shape in shapes for path in shape.paths()] + [item.path for item in (*edits, *contracts)]
        return frozenset(named)


@dataclass(frozen=True, slots=True)
class Precondition:
    """What an installation must have for the patchset to make any sense there."""

    shape: Shape
    summary: str
    remedy: str


@dataclass(frozen=True)
class Patchset:
    """The ordered steps for one distribution. Refuses cycles, unknown requirements and repeated names when built."""

    id: str
    version: str
    summary: str
    distribution: str  # as in PyPI
    package: str  # its top-level import package
    supports: str  # PEP 440 specifier of the releases that it is made for
    steps: tuple[Step, ...]
    preconditions: tuple[Precondition, ...] = ()
    sentinels: Sentinels | None = None  # the names that are watched for uses without a verdict; None: none
    # Programs in the patchset's folder that the target's interpreter runs; empty: the tier has nothing to run.
    smoke: str = ""  # seconds: is everything wired?
    e2e: str = ""  # minutes: does it do its work?

    def __post_init__(self) -> None:
        names = [step.id for step in self.steps]
        if not names:
            raise PatchsetError(f"patchset {self.id!r} has no steps", remedy="A patchset declares at least one Step.")
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise PatchsetError(f"patchset {self.id!r} has two steps named {', '.join(twice)}", remedy="Rename one.")
        graph.order(self.requirements)
        for path in sorted({path for step in self.steps for path in step.paths()}):
            if not path.startswith(f"{self.package}/") or ".." in path.split("/"):
                raise PatchsetError(
                    f"patchset {self.id!r} names {path!r}, which is not inside {self.package}/",
                    remedy=f"Paths are relative to the folder that holds {self.package}/, and begin with its name.",
                )

    @property
    def requirements(self) -> dict[str, tuple[str, ...]]:
        return {step.id: step.requires for step in self.steps}

    @cached_property
    def by_id(self) -> dict[str, Step]:
        return {step.id: step for step in self.steps}

    @property
    def programs(self) -> dict[Tier, str]:
        """Tier → the program that is its checks; a tier without one is not there."""
        return {tier: path for tier, path in ((Tier.SMOKE, self.smoke), (Tier.E2E, self.e2e)) if path}

    @property
    def strongest(self) -> Tier:
        """The furthest tier that has something of this patchset's to run."""
        return max([Tier.IMPORT, *self.programs], key=lambda tier: tier.rank)

    def watched(self) -> tuple[str, ...]:
        """Every upstream file that a step, a contract or a precondition names: what a snapshot fingerprints."""
        paths = {path for step in self.steps for path in step.paths()}
        paths.difference_update(path for step in self.steps for path in step.added_paths())
        paths.update(path for item in self.preconditions for path in item.shape.paths())
        return tuple(sorted(paths))


@dataclass(frozen=True)
class Loaded:
    """A patchset with the folder that it came from and the identity of its exact content."""

    patchset: Patchset
    folder: Path
    identity: PatchsetIdentity


def locate(name: str) -> Path:
    """The folder of a patchset by its path, its ID, or an entry point of ``ddtree_patch.patchsets``.

    A name without a slash is a folder only where it is neither of the others: one that happens to lie where the tool is
    started takes nobody's place.
    """
    if "/" in name:
        return _folder(name)
    if (resources.folder("patchsets") / name / "__init__.py").is_file():
        return resources.folder("patchsets") / name
    from importlib.metadata import entry_points  # late: it costs more than the rest of `status`

    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda item: item.name):
        if point.name == name:
            spec = find_spec(point.module)
            if spec is None or not spec.submodule_search_locations:
                raise UsageError(f"the entry point {name} = {point.value} is not a package", remedy=_write_one())
            return Path(next(iter(spec.submodule_search_locations)))
    if Path(name).is_dir():
        return _folder(name)
    known = sorted(item.parent.name for item in resources.folder("patchsets").glob("*/__init__.py"))
    raise UsageError(
        f"there is no patchset {name!r}", remedy=f"Known: {', '.join(known)}; or give a folder. {_write_one()}"
    )


def _folder(path: str) -> Path:
    given = Path(path)
    if not (given / "__init__.py").is_file():
        raise UsageError(f"{path} is not a patchset folder: it has no __init__.py", remedy=_write_one())
    return given.resolve()


@dataclass(frozen=True, slots=True)
class Description:
    """What a patchset says of itself, read without running it."""

    identity: PatchsetIdentity
    distribution: str
    package: str
    supports: str  # PEP 440 specifier; empty when it is no literal
    strongest: Tier  # the furthest tier that has something of this patchset's to run


def describe(folder: Path) -> Description:
    """Read the literals of ``Patchset(id=…, version=…, distribution=…, package=…)``; what is not one stays empty."""
    values = {
        "id": folder.name,
        "version": "",
        "distribution": "",
        "package": "",
        "supports": "",
        "smoke": "",
        "e2e": "",
    }
    try:
        module = ast.parse((folder / "__init__.py").read_bytes())
    except (OSError, SyntaxError, ValueError):
        module = ast.Module([], [])
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Patchset":
            for keyword in node.keywords:
                if keyword.arg in values and isinstance(keyword.value, ast.Constant):
                    values[keyword.arg] = str(keyword.value.value)
    identity = PatchsetIdentity(values["id"], values["version"], digest(folder))
    strongest = Tier.E2E if values["e2e"] else Tier.SMOKE if values["smoke"] else Tier.IMPORT
    return Description(identity, values["distribution"], values["package"], values["supports"], strongest)


def digest(folder: Path) -> str:
    """SHA-256 over the sorted paths and digests of a patchset's files; bytecode and editors' files do not count."""
    total = hashlib.sha256()
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        total.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


def contents(folder: Path) -> frozenset[str]:
    """The digest of each of a patchset's files that is not empty: what it adds as it lies there can be known by it."""
    return frozenset(hashlib.sha256(path.read_bytes()).hexdigest() for path in _files(folder) if path.stat().st_size)


def _files(folder: Path) -> list[Path]:
    def counts(path: Path) -> bool:
        inside = path.relative_to(folder)
        return path.is_file() and "__pycache__" not in inside.as_posix() and not path.name.startswith(".")

    return [path for path in sorted(folder.rglob("*")) if counts(path)]


def bundled() -> tuple[str, ...]:
    """The IDs of the patchsets that come with the tool."""
    return tuple(sorted(item.parent.name for item in resources.folder("patchsets").glob("*/__init__.py")))


def load(name: str = DEFAULT) -> Loaded:
    """Import the patchset ``name`` names. This runs its code."""
    folder = locate(name)
    identity = describe(folder).identity
    module_name = f"ddtree_patchset_{hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]}"
    for stale in [item for item in sys.modules if item == module_name or item.startswith(f"{module_name}.")]:
        del sys.modules[stale]
    spec = spec_from_file_location(module_name, folder / "__init__.py", submodule_search_locations=[str(folder)])
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except PatchsetError:
        raise
    except (Exception, SystemExit) as error:
        raise PatchsetError(
            f"patchset {folder} cannot be loaded: {type(error).__name__}: {error}", remedy=_write_one()
        ) from error
    patchset = getattr(module, "PATCHSET", None)
    if not isinstance(patchset, Patchset):
        raise PatchsetError(f"patchset {folder} defines no PATCHSET = Patchset(...)", remedy=_write_one())
    _refuse_programs_elsewhere(patchset, folder)
    identity = PatchsetIdentity(patchset.id, patchset.version, identity.digest)
    return Loaded(stamped(patchset, identity), folder, identity)


def stamped(patchset: Patchset, identity: PatchsetIdentity) -> Patchset:
    """The patchset with its identity in every file that shall say it."""
    from .codemods import AddStampedFile

    def edits(variant: Variant) -> tuple[Codemod | AddFile, ...]:
        return tuple(edit.stamped(identity) if isinstance(edit, AddStampedFile) else edit for edit in variant.edits)

    def variants(step: Step) -> tuple[Variant, ...]:
        return tuple(replace(variant, edits=edits(variant)) for variant in step.variants)

    return replace(patchset, steps=tuple(replace(step, variants=variants(step)) for step in patchset.steps))


def _refuse_programs_elsewhere(patchset: Patchset, folder: Path) -> None:
    """A program outside the folder would run without being in the patchset's digest."""
    inside = folder.resolve()
    for tier, name in patchset.programs.items():
        program = (inside / name).resolve()
        if not program.is_file() or inside not in program.parents:
            summary = f"patchset {patchset.id!r} has {tier}={name!r}, which is no file in its folder"
            raise PatchsetError(summary, remedy=_write_one())


def _write_one() -> str:
    return "See docs/writing-a-patchset.md."
