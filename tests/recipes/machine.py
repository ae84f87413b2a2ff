"""What a runner or a base image has: Python with pip, and an index. The index is a folder of wheels: no test of the
recipes uses the network.

The wheels are SGLang's own, and what is installed beside this interpreter, packed again: the tool is built and
installed from its source with what it really needs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.tags import sys_tags
from packaging.utils import canonicalize_name, parse_wheel_filename

from ddtree_patcher.records import row_for

REPOSITORY = Path(__file__).resolve().parents[2]
RECIPES = REPOSITORY / "recipes"
SHIPPED = ("action.yml", "pyproject.toml", "README.md", "LICENSE", "ddtree_patcher", "patchsets", "snapshots", "docs")
TOOL = "ddtree-patch"
NOT_PACKED = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")  # written by who installed it


@dataclass(frozen=True)
class Machine:
    """``bin`` holds Python, pip and the programs that a test lends; ``index`` the wheels."""

    bin: Path
    index: Path

    @property
    def path(self) -> str:
        return f"{self.bin}:/usr/local/bin:/usr/bin:/bin"

    def environment(self, home: Path) -> dict[str, str]:
        """The variables of a fresh machine, with pip and uv set up for the index."""
        (home / "tmp").mkdir(parents=True, exist_ok=True)
        return {
            "PATH": self.path,
            "HOME": str(home),
            "TMPDIR": str(home / "tmp"),
            "LANG": "C.UTF-8",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.index),
            "PIP_COMPILE": "0",
            "PIP_ROOT_USER_ACTION": "ignore",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "UV_CACHE_DIR": str(home / "uv-cache"),
            "UV_FIND_LINKS": str(self.index),
            "UV_NO_INDEX": "1",
            "UV_OFFLINE": "1",
            "UV_PYTHON": str(self.bin / "python"),
            "UV_PYTHON_DOWNLOADS": "never",
        }

    def lend(self, program: str) -> None:
        """Put a program on the path: the one beside the Python of the tests, or the system's."""
        beside = Path(sys.executable).with_name(program)
        found = str(beside) if beside.is_file() else shutil.which(program)
        assert found, f"{program} is not there"
        (self.bin / program).unlink(missing_ok=True)
        (self.bin / program).symlink_to(found)


def make_machine(folder: Path) -> Machine:
    """A machine whose Python is that of the tests, with pip and nothing else; its index has what the tool needs."""
    python = folder / "python/bin/python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "python")], check=True)
    _lend_pip(python)
    index = folder / "index"
    index.mkdir()
    for one in _closure([Requirement("hatchling"), *_requirements(Requirement(TOOL))]):
        _pack(one, index)
    return Machine(python.parent, index)


def add_sglang(machine: Machine, wheel: Path) -> None:
    """SGLang's wheel into the index; where this Python is not the wheel's, under a name that suits every Python."""
    name, version, _, tags = parse_wheel_filename(wheel.name)
    suits = tags.intersection(sys_tags())
    os.link(_near(wheel, machine), machine.index / (wheel.name if suits else f"{name}-{version}-py3-none-any.whl"))


def changed_wheel(wheel: Path, folder: Path, path: str, old: bytes, new: bytes) -> Path:
    """A wheel as another build of the same release would be: one file differs, and RECORD agrees with it."""
    with zipfile.ZipFile(wheel) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    assert content[path].count(old) == 1
    content[path] = content[path].replace(old, new)
    (record,) = [name for name in content if name.endswith(".dist-info/RECORD")]
    rows = content[record].decode().splitlines(keepends=True)
    kept = [row for row in rows if not row.startswith(f"{path},")]
    content[record] = "".join([*kept, row_for(path, content[path]), "\n"]).encode()
    name, version, _, _ = parse_wheel_filename(wheel.name)
    return _write(folder / f"{name}-{version}-py3-none-any.whl", content)


def stand_ins(machine: Machine, folder: Path) -> None:
    """For what the wheels of the index require, on any Python, and the index does not have: empty distributions."""
    folder.mkdir(exist_ok=True)
    there = {parse_wheel_filename(path.name)[0] for path in machine.index.iterdir()}
    for wheel in sorted(machine.index.iterdir()):
        for need in _required_by(wheel):
            if canonicalize_name(need.name) not in there:
                _stand_in(need, folder)


def _required_by(wheel: Path) -> list[Requirement]:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        fields = archive.read(metadata).decode().partition("\n\n")[0].splitlines()
    values = [line.partition(": ")[2] for line in fields if line.startswith("Requires-Dist: ")]
    return [Requirement(value) for value in values if "extra ==" not in value]


def _stand_in(need: Requirement, folder: Path) -> None:
    """An empty wheel of a version that will do."""
    name, version = canonicalize_name(need.name).replace("-", "_"), _suiting(need)
    info = f"{name}-{version}.dist-info"
    extras = "".join(f"Provides-Extra: {extra}\n" for extra in sorted(need.extras))
    content = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{extras}".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    _sealed(folder / f"{name}-{version}-py3-none-any.whl", info, content)


def checkout(folder: Path) -> Path:
    """This repository, as a submodule or a clone of it lies in somebody else's."""
    folder.mkdir(parents=True)
    unwanted = shutil.ignore_patterns("__pycache__", "_patchsets", "_snapshots")
    for name in SHIPPED:
        if (REPOSITORY / name).is_dir():
            shutil.copytree(REPOSITORY / name, folder / name, ignore=unwanted)
        else:
            shutil.copy2(REPOSITORY / name, folder / name)
    return folder


def _lend_pip(python: Path) -> None:
    """The pip of the environment that runs the tests, as if it were another's own."""
    import pip

    (site,) = python.parent.parent.glob("lib/python*/site-packages")
    theirs = Path(pip.__file__).parent
    for path in (theirs, *theirs.parent.glob("pip-*.dist-info")):
        (site / path.name).symlink_to(path)
    script = python.with_name("pip")
    script.write_text(f"#!{python}\nimport sys\nfrom pip._internal.cli.main import main\nsys.exit(main())\n")
    script.chmod(0o755)


def _requirements(of: Requirement) -> list[Requirement]:
    """What a distribution that is installed here requires, here."""
    found = [Requirement(line) for line in distribution(of.name).requires or ()]
    extras = of.extras or {""}
    return [item for item in found if not item.marker or any(item.marker.evaluate({"extra": name}) for name in extras)]


def _closure(needed: list[Requirement]) -> Iterator[Distribution]:
    seen: set[str] = set()
    queue = list(needed)
    while queue:
        item = queue.pop()
        if (name := canonicalize_name(item.name)) not in seen:
            seen.add(name)
            queue += _requirements(item)
            yield distribution(item.name)


def _pack(installed: Distribution, folder: Path) -> None:
    """An installed distribution as a wheel: its files inside site-packages, without what the installer wrote."""
    files = {file.as_posix(): Path(str(file.locate())) for file in installed.files or ()}
    content = {
        name: path.read_bytes()
        for name, path in files.items()
        if not name.startswith("..") and not name.endswith((".pyc", *NOT_PACKED))
    }
    (info,) = {name.partition("/")[0] for name in content if ".dist-info/" in name}
    tags = [line.split()[1] for line in content[f"{info}/WHEEL"].decode().splitlines() if line.startswith("Tag: ")]
    _sealed(folder / f"{info.removesuffix('.dist-info')}-{tags[0]}.whl", info, content)


def _sealed(path: Path, info: str, content: dict[str, bytes]) -> Path:
    """A wheel with its RECORD."""
    rows = [row_for(name, data) for name, data in content.items()]
    return _write(path, {**content, f"{info}/RECORD": "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()})


def _write(path: Path, content: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


def _near(wheel: Path, machine: Machine) -> Path:
    """The wheel where it can be linked to: a copy, if it lies on another file system."""
    if wheel.stat().st_dev == machine.index.stat().st_dev:
        return wheel
    return Path(shutil.copy2(wheel, machine.index.parent))


def _suiting(need: Requirement) -> str:
    """A version that a requirement allows: one that it names, or a number between."""
    named = [item.version.replace(".*", ".0") for item in need.specifier]
    for version in [*named, *(f"{item}.1" for item in named), "1.0", "0.1"]:
        if need.specifier.contains(version, prereleases=True):
            return version
    raise AssertionError(f"no version found for {need}")
