"""Fetches SGLang wheels into a folder: ``python tools/fetch_wheels.py [--into FOLDER] [VERSION ...]``.

Without versions, every release of ``wheels.txt`` is fetched. The wheels are named by their own platform, so that they
are found whatever Python runs this. pip proves each download by the digest in ``wheels.txt``, and so is every wheel
that is already there: a run that was cut off goes on where it stopped. The exit status is 1, with pip's own words, when
a wheel cannot be had.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
WHEELS = HERE.parent / ".cache" / "wheels"
# What the wheels are built for. Nothing compiled in them is run here: any machine may unpack and patch them.
PLATFORM = (
    *("--python-version", "311", "--implementation", "cp", "--abi", "cp311"),
    *("--platform", "manylinux_2_34_x86_64", "--only-binary=:all:"),
)


class FetchError(Exception):
    """A wheel could not be had; the text says why."""


def releases() -> Mapping[str, str]:
    """Version → SHA-256, in the order of ``wheels.txt``."""
    rows = [line.split() for line in (HERE / "wheels.txt").read_text("utf-8").splitlines() if not line.startswith("#")]
    return {name.removeprefix("sglang=="): option.removeprefix("--hash=sha256:") for name, option in rows}


def find(version: str, folder: Path = WHEELS) -> Path | None:
    """The wheel of a version, where it is there and whole."""
    return next((path for path in folder.glob(f"sglang-{version}-*.whl") if _digest(path) == releases()[version]), None)


def fetch(version: str, folder: Path = WHEELS) -> Path:
    """The wheel of a version, downloaded unless it is there already. Raises :class:`FetchError`."""
    if version not in releases():
        raise FetchError(f"sglang {version} is not one of {', '.join(releases())}")
    return find(version, folder) or _download(version, folder)


def _download(version: str, folder: Path) -> Path:
    print(f"fetching sglang {version}", file=sys.stderr)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
        wanted = Path(scratch) / "wanted.txt"
        wanted.write_text(f"sglang=={version} --hash=sha256:{releases()[version]}\n", "utf-8")
        # What pip says is for whoever waits, not for standard output.
        done = subprocess.run([*_pip_download(scratch), "-r", str(wanted)], stdout=sys.stderr, check=False)
        found = list(Path(scratch).glob("*.whl"))
        if done.returncode or len(found) != 1:
            raise FetchError(f"sglang {version} could not be downloaded: pip ended with status {done.returncode}")
        return found[0].replace(folder / found[0].name)


def _pip_download(into: str) -> Sequence[str]:
    quiet = ("--quiet", "--disable-pip-version-check", "--no-input")
    return (sys.executable, "-m", "pip", *quiet, "download", "--no-deps", "--require-hashes", *PLATFORM, "-d", into)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Fetches SGLang wheels.")
    parser.add_argument("--into", type=Path, default=WHEELS, metavar="FOLDER", help="[.cache/wheels]")
    parser.add_argument("versions", nargs="*", metavar="VERSION", default=None, help="[every release of wheels.txt]")
    options = parser.parse_args(argv)
    wanted = options.versions or list(releases())
    for version in wanted:
        try:
            fetch(version, options.into)
        except FetchError as error:
            print(f"fetch_wheels: {error}", file=sys.stderr)
            return 1
    print(f"{len(wanted)} wheels of SGLang are in {options.into}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
