"""Fetches SGLang wheels into a folder: ``python tools/fetch_wheels.py [--into FOLDER] [VERSION ...]``.

Without versions, every release of ``snapshots/wheels.txt`` is fetched. The exit status is 1, with pip's own words, when
a wheel cannot be had.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ddtree_patcher import wheels
from ddtree_patcher.wheels import PLATFORM, WheelUnavailable

__all__ = ["PLATFORM", "WHEELS", "FetchError", "fetch", "releases"]

FetchError = WheelUnavailable
SGLANG = "sglang"
WHEELS = Path(__file__).resolve().parent.parent / ".cache" / "wheels"


def releases() -> Mapping[str, str]:
    """Version → SHA-256, oldest first."""
    return wheels.pinned(SGLANG)


def fetch(version: str, folder: Path = WHEELS) -> Path:
    """The wheel of a known release, downloaded unless it is there already. Raises :class:`FetchError`."""
    if version not in releases():
        raise FetchError(f"sglang {version} is not one of {', '.join(releases())}")
    return wheels.fetch(SGLANG, version, folder, lambda message: print(message, file=sys.stderr))


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Fetches SGLang wheels.")
    parser.add_argument("--into", type=Path, default=WHEELS, metavar="FOLDER", help="[.cache/wheels]")
    parser.add_argument("versions", nargs="*", metavar="VERSION", default=None, help="[every known release]")
    options = parser.parse_args(argv)
    wanted = options.versions or list(releases())
    for version in wanted:
        try:
            fetch(version, options.into)
        except FetchError as error:
            print(f"fetch_wheels: {error}", error.detail, sep="\n", file=sys.stderr)
            return 1
    print(f"{len(wanted)} wheels of SGLang are in {options.into}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
