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
    program = str(Path(sys.executable).parent / "ddtree-patch")
    also = [word for name in bundled() if name != DEFAULT for word in ("--also", name)]
    for version in releases():
        if version not in TOO_OLD:
            out = folder / f"sglang-{version}.json"
            capture = [program, "-q", "snapshot", "capture", str(fetch(version)), *also, "--out", str(out)]
            subprocess.run(capture, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else SNAPSHOTS)
