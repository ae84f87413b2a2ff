"""A cache of wheels: found there, else downloaded by pip, each proved by its digest where that is known.

``snapshots/wheels.txt`` says what the wheels of known releases are, byte for byte: pip proves each download by it, and
so is every wheel that is there already, so that a run that was cut off goes on where it stopped. A release that is not
listed can be had too; it is what the index says it is.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from . import resources
from .digest import sha256
from .errors import EnvironmentRefused

# What SGLang's wheels are built for. Nothing compiled in them is run here: any machine may read, unpack and patch them.
PLATFORM = (
    *("--python-version", "311", "--implementation", "cp", "--abi", "cp311"),
    *("--platform", "manylinux_2_34_x86_64", "--only-binary=:all:"),
)
_QUIETLY = ("--quiet", "--disable-pip-version-check", "--no-input")
_RETRIES = "2"  # pip's own five take half a minute for each wheel where there is no network
_SAID = 3  # of pip's last lines, how many are passed on
_WIDTH = 300  # characters of each: pip lists every version there is


class WheelUnavailable(EnvironmentRefused):
    """A wheel is not in the cache and could not be downloaded; the detail is what pip said."""


def cache_folder() -> Path:
    """Where wheels are kept unless a folder is named: ``ddtree-patch/wheels`` in the user's cache (XDG)."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    # The specification: a path that is not absolute is to be ignored.
    base = Path(given) if os.path.isabs(given) else Path(os.path.expanduser("~")) / ".cache"
    return base / "ddtree-patch" / "wheels"


@cache
def pinned(distribution: str) -> Mapping[str, str]:
    """Version → SHA-256 of its wheel, for the releases of a distribution that are known; oldest first."""
    lines = (resources.folder("snapshots") / "wheels.txt").read_text("utf-8").splitlines()
    rows = [line.split() for line in lines if line.startswith(f"{distribution}==")]
    return {name.partition("==")[2]: option.removeprefix("--hash=sha256:") for name, option in rows}


def find(distribution: str, version: str, folder: Path) -> Path | None:
    """The wheel of a version in a folder, where it is there and, if its digest is known, whole."""
    digest = pinned(distribution).get(version)
    for path in sorted(folder.glob("*.whl")):
        if _is_of(path.name, distribution, version) and digest in (None, sha256(path.read_bytes())):
            return path
    return None


def fetch(distribution: str, version: str, folder: Path, say: Callable[[str], None]) -> Path:
    """The wheel of a version, downloaded (``say`` is told) unless it is there. Raises :class:`WheelUnavailable`."""
    return find(distribution, version, folder) or _download(distribution, version, folder, say)


def _download(distribution: str, version: str, folder: Path, say: Callable[[str], None]) -> Path:
    say(f"fetching {distribution} {version}")
    folder.mkdir(parents=True, exist_ok=True)
    digest = pinned(distribution).get(version)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
        wanted = Path(scratch) / "wanted.txt"
        wanted.write_text(f"{distribution}=={version}{f' --hash=sha256:{digest}' if digest else ''}\n", "utf-8")
        command = [sys.executable, "-m", "pip", *_QUIETLY, "download", "--no-deps", *PLATFORM]
        done = subprocess.run(
            [*command, "--dest", scratch, "--requirement", str(wanted)],
            env={"PIP_RETRIES": _RETRIES, **os.environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        found = list(Path(scratch).glob("*.whl"))
        if done.returncode or len(found) != 1:
            said = done.stderr if done.returncode else f"pip left {len(found)} wheels"
            raise _unavailable(distribution, version, folder, said)
        return found[0].replace(folder / found[0].name)


def _unavailable(distribution: str, version: str, folder: Path, said: str) -> WheelUnavailable:
    lines = [line.strip() for line in said.splitlines() if line.strip()] or ["pip said nothing"]
    offered = re.search(r"\(from versions: (.*)\)", said)
    reason = lines[-1]
    if offered:
        newest = offered[1].rpartition(", ")[2]
        reason = (
            "no index offered it" if newest == "none" else f"the index has no {version}; the last it has is {newest}"
        )
    return WheelUnavailable(
        f"the wheel of {distribution} {version} could not be fetched: {reason[:_WIDTH]}",
        detail="\n".join(line[:_WIDTH] for line in lines[-_SAID:]),
        remedy=f"See that pip reaches an index that has it (PIP_INDEX_URL), or put the wheel into {folder}.",
    )


def _is_of(name: str, distribution: str, version: str) -> bool:
    try:
        found, its_version, _, _ = parse_wheel_filename(name)
    except InvalidWheelFilename:
        return False
    return found == canonicalize_name(distribution) and its_version == Version(version)
