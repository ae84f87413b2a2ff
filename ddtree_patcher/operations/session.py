"""What every command begins with: which installation, which state folder, which patchset."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

from .. import installation as installations
from .. import patchset as patchsets
from ..errors import OtherPatchset, PatchError
from ..installation import Installation
from ..model import Diagnostic, ExitCode, PatchsetIdentity, Report, Result
from ..patchset import Description, Loaded
from ..store import State, Store


def _silent(what: object) -> None:
    return None


@dataclass(frozen=True)
class Options:
    """The options before the command's name."""

    python: str = ""  # empty: the interpreter that runs the tool
    root: str = ""  # empty: where ``python`` imports the package from
    patchset: str = patchsets.DEFAULT
    state_dir: str = ""  # empty: beside the package
    lock_timeout: float = 0.0  # seconds
    allow_editable: bool = False
    break_system: bool = False
    allow_shared: bool = False
    say: Callable[[str], None] = field(default=_silent, compare=False)  # told what takes time
    came_to: Callable[[Result], None] = field(default=_silent, compare=False)  # told each result as it is there


@dataclass(frozen=True)
class Session:
    """One command's view of the world, each part looked up when it is first asked for."""

    options: Options

    @cached_property
    def description(self) -> Description:
        """The patchset's identity, without running its code."""
        return patchsets.describe(patchsets.locate(self.options.patchset))

    @cached_property
    def loaded(self) -> Loaded:
        return patchsets.load(self.options.patchset)

    @cached_property
    def installation(self) -> Installation:
        described = self.description
        return installations.find(
            described.package or "sglang",
            described.distribution or "sglang",
            python=self.options.python,
            root=self.options.root,
        )

    def recover(self) -> tuple[Diagnostic, ...]:
        """With the lock held: put back what a process that died left half done, and look at what is there now."""
        from .. import transaction

        recovered = transaction.recover(self.installation.folder, self.store)
        self.look_again()
        return (recovered,) if recovered else ()

    def look_again(self) -> None:
        """Forget what the installation was: others may have written to it since."""
        self.__dict__["installation"] = installations.look_again(self.installation)

    @cached_property
    def store(self) -> Store:
        return Store.beside(self.installation.folder, self.options.state_dir)

    def state(self) -> State | None:
        return self.store.state()

    def tell(self, results: Iterable[Result]) -> None:
        """Let those who follow the run know. What is looked at twice is told twice: the last one counts."""
        for item in results:
            self.options.came_to(item)

    def refuse_unsafe(self) -> None:
        """Raise unless the installation may be patched."""
        options = self.options
        for error in installations.refusals(
            self.installation,
            allow_editable=options.allow_editable,
            break_system=options.break_system,
            allow_shared=options.allow_shared,
        ):
            raise error

    def refuse_not_ours(self) -> None:
        """Raise unless the installation may be written to; what is put back needs no proof of being pristine."""
        options = self.options
        for error in installations.ownership(
            self.installation, options.allow_editable, options.break_system, options.allow_shared
        ):
            raise error

    def refuse_other_patchset(self, state: State | None) -> None:
        """Raise when another patchset is applied: one installation holds one at a time."""
        if state is not None and state.patchset.id != self.identity.id:
            raise OtherPatchset(
                f"the patchset {state.patchset.id} {state.patchset.version} is applied to {self.installation.root}",
                remedy=f"Revert it first: ddtree-patch --patchset {state.patchset.id} revert.",
            )

    def refuse_unsuited(self) -> None:
        """Raise unless the installation has what the patchset builds on."""
        from ..digest import read_from
        from ..errors import EnvironmentRefused
        from ..tree import Tree

        tree = Tree(read_from(self.installation.folder))
        for item in self.loaded.patchset.preconditions:
            deleted = any(self.installation.recorded_sha256(path) for path in item.shape.paths())
            if not item.shape.holds(tree) and not deleted:  # a deleted file is reported as one
                where = f"{self.installation.distribution} {self.installation.version or '(version unknown)'}"
                raise EnvironmentRefused(f"{where}: {item.summary}", remedy=item.remedy)

    def report(self, command: str, exit_code: ExitCode, outcome: str = "", **parts: object) -> Report:
        """A report about this installation and patchset."""
        return Report(
            command=command,
            exit_code=exit_code,
            outcome=outcome or exit_code.symbol,
            installation=self.installation.describe(),
            patchset=self.identity,
            **parts,  # type: ignore[arg-type]
        )

    @property
    def identity(self) -> PatchsetIdentity:
        return self.description.identity

    def failure(self, command: str, error: PatchError) -> Report:
        """A report of an error, with as much of the surroundings as is known."""
        known = self.__dict__.get("installation")
        described = self.__dict__.get("description")
        return Report(
            command=command,
            exit_code=error.exit_code,
            outcome=error.exit_code.symbol,
            installation=known.describe() if known else {},
            patchset=described.identity if described else PatchsetIdentity(),
            diagnostics=error.diagnostics(),
        )


def worst(diagnostics: tuple[Diagnostic, ...], otherwise: ExitCode) -> ExitCode:
    """CONFLICT when a diagnostic is an error, else what it would be."""
    return ExitCode.CONFLICT if any(item.severity.value == "error" for item in diagnostics) else otherwise
