"""Finds the installed package that is meant and describes it, without importing any of it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from . import interpreter as interpreters
from . import records
from .errors import EnvironmentRefused, UsageError
from .interpreter import Facts, Interpreter
from .links import OWN_COPY, Place, real_place
from .records import Record
from .store import NAME as STATE


@dataclass(frozen=True)
class Installation:
    """One installed package and how it got there."""

    folder: Path  # the real folder that holds the package: site-packages, dist-packages, a --target folder …
    package: str  # the import package, a folder in ``folder``
    interpreter: Interpreter  # runs the checks
    distribution: str
    version: str  # of the dist-info; empty without one
    installer: str = ""  # INSTALLER's word; empty without one
    dist_info: str = ""  # its folder's name; empty without one
    direct_url: dict[str, Any] = field(default_factory=dict)  # PEP 610; empty for an index installation
    record: Record | None = None  # None: there is no RECORD
    linked_from: str = ""  # the path that leads here by a link out of its environment; empty where none does

    @property
    def root(self) -> Path:
        return self.folder / self.package

    @property
    def record_path(self) -> str:
        return f"{self.dist_info}/RECORD"

    @property
    def is_editable(self) -> bool:
        info = self.direct_url.get("dir_info")
        return isinstance(info, dict) and bool(info.get("editable"))

    @property
    def is_vcs(self) -> bool:
        return "vcs_info" in self.direct_url

    @property
    def kind(self) -> str:
        """How it got there, in a word: ``editable``, ``vcs``, ``wheel`` (an index or a file) or ``unpacked``."""
        if self.is_editable:
            return "editable"
        if self.is_vcs:
            return "vcs"
        return "wheel" if self.installer else "unpacked"

    @property
    def in_interpreter(self) -> bool:
        """Whether the package lies in the interpreter's own site folder."""
        return str(self.folder) in {os.path.realpath(site) for site in self.interpreter.sites}

    @property
    def is_managed(self) -> bool:
        """Whether the package lies where the system's package manager has the say (PEP 668)."""
        return str(self.folder) in {os.path.realpath(site) for site in self.interpreter.managed_sites}

    @property
    def import_folders(self) -> tuple[Path, ...]:
        """The real folder, and the same one under the names by which the interpreter knows it."""
        sites = (Path(site) for site in self.interpreter.sites if os.path.realpath(site) == str(self.folder))
        return tuple(dict.fromkeys([self.folder, *sites]))

    def recorded_sha256(self, path: str) -> str:
        """What RECORD says a file's digest is; empty where it does not say."""
        row = self.record.rows.get(path) if self.record else None
        return row.sha256 if row else ""

    def describe(self) -> dict[str, object]:
        """The facts, as JSON shows them."""
        return {
            "version": self.version,
            "root": str(self.root),
            "distribution": self.distribution,
            "installer": self.installer,
            "kind": self.kind,
            "python": self.interpreter.executable,
            "python_version": self.interpreter.version,
        }


def find(package: str, distribution: str, *, python: str = "", root: str = "") -> Installation:
    """The installation that is meant: below ``root`` where given, else where ``python`` would import it from."""
    facts = interpreters.ask(python or sys.executable, package) if python or not root else interpreters.own_facts()
    place = _place_of(root, package, facts["prefix"]) if root else _place_found(facts, package, distribution)
    described = _describe(place.folder, package, distribution, interpreters.interpreter_of(facts))
    return replace(described, linked_from=place.linked_from)


def look_again(installation: Installation) -> Installation:
    """The same installation as it is on disk now: its RECORD may have been put back, or rewritten, meanwhile."""
    now = _describe(installation.folder, installation.package, installation.distribution, installation.interpreter)
    return replace(now, linked_from=installation.linked_from)


def refusals(
    installation: Installation, *, allow_editable: bool, break_system: bool, allow_shared: bool = False
) -> list[EnvironmentRefused]:
    """Why this installation must not be patched; empty when it may be."""
    # Of somebody's source tree RECORD knows nothing: its files are an unknown base, which --allow-drift accepts.
    unproved = [] if installation.is_editable and allow_editable else _unproved(installation)
    return [*ownership(installation, allow_editable, break_system, allow_shared), *unproved]


def ownership(
    installation: Installation, allow_editable: bool, break_system: bool, allow_shared: bool
) -> list[EnvironmentRefused]:
    """Why this installation is not ours to write to."""
    found: list[EnvironmentRefused] = []
    where = installation.root
    if (installation.is_editable or installation.is_vcs) and not allow_editable:
        url = installation.direct_url.get("url", "")
        found.append(
            EnvironmentRefused(
                f"{where} is {'an editable' if installation.is_editable else 'a VCS'} installation of {url}",
                remedy="Patch a wheel installation, or pass --allow-editable if that source tree may be rewritten.",
            )
        )
    if installation.is_managed and not break_system:
        found.append(
            EnvironmentRefused(
                f"{installation.interpreter.executable} is an externally managed environment (PEP 668)",
                detail=installation.interpreter.managed,
                remedy="Use a virtual environment, or pass --break-system-packages.",
            )
        )
    if installation.linked_from and not allow_shared:
        found.append(
            EnvironmentRefused(
                f"{installation.linked_from} leads by a symbolic link out of its environment, to {where}",
                detail="Whoever else uses the files there would be patched too.",
                remedy=f"{OWN_COPY}, or pass --allow-shared.",
            )
        )
    return found


def _unproved(installation: Installation) -> list[EnvironmentRefused]:
    """Why nothing proves which files are pristine."""
    found: list[EnvironmentRefused] = []
    if not installation.dist_info:
        found.append(
            EnvironmentRefused(
                f"{installation.folder} has no {installation.distribution}-*.dist-info beside {installation.package}/",
                remedy="Reinstall with pip or uv: without metadata nothing proves which files are pristine.",
            )
        )
    elif installation.record is None:
        found.append(
            EnvironmentRefused(
                f"{installation.dist_info} has no RECORD, or an empty one: nothing proves which files are pristine",
                remedy="Install SGLang with pip or uv into a virtual environment and patch that.",
            )
        )
    return found


def _place_of(root: str, package: str, prefix: str) -> Place:
    given = Path(root)
    if not given.exists():
        raise UsageError(f"--root {root} does not exist", remedy=_ROOT)
    if not given.is_dir():
        raise UsageError(f"--root {root} is not a folder", remedy=_ROOT)
    if (given / package / "__init__.py").is_file():
        return real_place(given / package, package, prefix)
    names = (Path(os.path.abspath(given)).name, Path(os.path.realpath(given)).name)
    if package in names and (given / "__init__.py").is_file():
        return real_place(given, package, prefix)
    _refuse_sourceless([given / package, given])
    inside = sorted(item.name for item in given.iterdir() if item.name != STATE)[:5]
    what = f"it holds {', '.join(inside)}" if inside else "it is empty"
    raise UsageError(
        f"--root {root} has no {package}/__init__.py: {what}",
        remedy=_ROOT.replace("sglang", package) + _left_behind([given]),
    )


def _left_behind(folders: Iterable[Path]) -> str:
    """What to do with the state of a patch whose package was uninstalled; empty where there is none."""
    found = sorted(str(folder / STATE) for folder in folders if (folder / STATE).is_dir())
    return f" {', '.join(found)} is what a patch left of an installation that is gone: delete it." if found else ""


_ROOT = "Name the folder that holds sglang/ (site-packages, a --target folder, an unpacked wheel), or sglang/ itself."


def _place_found(facts: Facts, package: str, distribution: str) -> Place:
    python = facts["executable"]
    if not facts["found"]:
        raise EnvironmentRefused(
            f"{python} has no {package}",
            remedy=f"Install {distribution} there, name another interpreter with --python, or a folder with --root."
            + _left_behind(map(Path, facts["sites"])),
        )
    usable = [place for place in map(Path, facts["places"]) if (place / "__init__.py").is_file()]
    if not usable:
        _refuse_sourceless([Path(place) for place in facts["places"]])
        raise EnvironmentRefused(
            f"{python} finds {package} at {facts['origin'] or facts['places']}, which is not a package folder",
            remedy="Zipped and namespace packages cannot be patched; reinstall from a wheel.",
        )
    return real_place(usable[0], package, facts["prefix"])


def _refuse_sourceless(places: Sequence[Path]) -> None:
    """Raise for a package of which there is nothing but bytecode (``compileall -b``, sources deleted)."""
    for place in places:
        if (place / "__init__.pyc").is_file() and not (place / "__init__.py").exists():
            raise EnvironmentRefused(
                f"{place} holds bytecode without its sources: there is nothing that a patch could change",
                remedy="Install the package from its wheel, with its sources, and patch that.",
            )


def _describe(folder: Path, package: str, distribution: str, interpreter: Interpreter) -> Installation:
    found = sorted(folder.glob(f"{distribution}-*.dist-info"))
    if len(found) > 1:
        raise EnvironmentRefused(
            f"{folder} has {len(found)} dist-info folders of {distribution}: {', '.join(item.name for item in found)}",
            remedy="An interrupted upgrade, or `pip install --target --upgrade`, left one behind: remove the old one.",
        )
    if not found:
        return _describe_source_tree(folder, package, distribution, interpreter)
    info = found[0]
    data = _read(info / "RECORD")
    return Installation(
        folder=folder,
        package=package,
        interpreter=interpreter,
        distribution=distribution,
        version=_version(info, distribution),
        installer=_installer(info),
        dist_info=info.name,
        direct_url=_direct_url(info),
        record=records.parse(data, str(info / "RECORD")) if data else None,
    )


def _describe_source_tree(folder: Path, package: str, distribution: str, interpreter: Interpreter) -> Installation:
    """A folder without metadata of its own: an editable installation keeps them in the interpreter's site folder."""
    for info in (info for site in interpreter.sites for info in Path(site).glob(f"{distribution}-*.dist-info")):
        direct_url = _direct_url(info)
        origin = Path(os.path.realpath(unquote(urlsplit(str(direct_url.get("url", ""))).path) or "/"))
        found = Installation(folder, package, interpreter, distribution, _version(info, distribution))
        found = replace(found, installer=_installer(info), direct_url=direct_url)
        if found.is_editable and origin in (folder, *folder.parents) and origin != Path("/"):
            return found
    return Installation(folder, package, interpreter, distribution, "")


def _installer(info: Path) -> str:
    return _read(info / "INSTALLER").decode("utf-8", "replace").strip()


def _version(info: Path, distribution: str) -> str:
    for line in _read(info / "METADATA").decode("utf-8", "replace").splitlines():
        if line.startswith("Version:"):
            return line.partition(":")[2].strip()
        if not line:
            break
    return info.name.removesuffix(".dist-info").removeprefix(f"{distribution}-")


def _direct_url(info: Path) -> dict[str, Any]:
    data = _read(info / "direct_url.json")
    if not data:
        return {}
    try:
        value = json.loads(data)
    except ValueError as error:
        raise EnvironmentRefused(
            f"{info / 'direct_url.json'} is not JSON: {error}", remedy="Reinstall the package."
        ) from error
    return value if isinstance(value, dict) else {}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return b""
