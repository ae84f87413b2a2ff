"""Captures every snapshot from the wheels: ``python tools/capture_snapshots.py [FOLDER]`` [snapshots].

A snapshot watches what any of the bundled patchsets watches.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ddtree_patcher.patchset import DEFAULT, bundled
from fetch_wheels import fetch, releases

TOO_OLD = ("0.5.9",)  # no DFLASH: nothing to watch
SNAPSHOTS = Path(__file__).resolve().parent.parent / "snapshots"


def main(folder: Path) -> None:
    for version in releases():
        if version not in TOO_OLD:
            capture(fetch(version), folder / f"sglang-{version}.json")


def capture(wheel: Path, out: Path) -> None:
    """One snapshot, of one wheel. The module that runs is the one beside this file's folder, or what is on the path."""
    also = [word for name in bundled() if name != DEFAULT for word in ("--also", name)]
    command = [
        sys.executable,
        "-m",
        "ddtree_patcher",
        "-q",
        "snapshot",
        "capture",
        str(wheel),
        *also,
        "--out",
        str(out),
    ]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else SNAPSHOTS)
