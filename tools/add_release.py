"""Adds one release of SGLang: ``python tools/add_release.py VERSION [--wheels FOLDER]`` [.cache/wheels].

The wheel is fetched, its digest enters the list of releases (``snapshots/wheels.txt``), its snapshot is captured, and
it is compared with the release before it and planned. What is left for a person to look at is printed. The exit status
is that of ``matrix``: 0, or 4, 5 or 6 where the patchset does not fit. The release stays listed then: its tests are to
be red until it fits. A wheel that cannot be had, or is another one than the list has, changes nothing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from packaging.version import InvalidVersion, Version

import capture_snapshots
import fetch_wheels
import wheel_tree
from ddtree_patcher import wheels
from ddtree_patcher.digest import sha256

SNAPSHOTS = Path(__file__).resolve().parent.parent / "snapshots"
LIST = SNAPSHOTS / "wheels.txt"
NEXT = """\

# What to look at now
1. The comparison above: what it says of each step, and every symbol of a contract.
2. `git diff snapshots`: one line in wheels.txt, one new snapshot.
3. The literals: a verdict for each `unknown_literal` (patchsets/ddtree/verdicts.py).
4. `tests/sglang_releases.py`: what this release needs, and what DFLASH serves from it on.
5. `make survival`, then `make test TESTS="-k {version}"`, then `make supported-releases`: how each step is done there,
   the tests of this release, and the page made anew.
6. README.md and docs/ddtree.md: the span and the number of releases; `make pytest TESTS=tests/docs` says where.
"""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Adds one release of SGLang.")
    parser.add_argument("version", metavar="VERSION")
    parser.add_argument("--wheels", type=Path, default=fetch_wheels.WHEELS, metavar="FOLDER", help="[.cache/wheels]")
    options = parser.parse_args(argv)
    try:
        version = str(Version(options.version))
        wheel = wheels.fetch(fetch_wheels.SGLANG, version, options.wheels, lambda text: print(f"# {text}", flush=True))
    except (InvalidVersion, wheels.WheelUnavailable) as error:
        print(f"add_release: {error}", file=sys.stderr)
        return 2 if isinstance(error, InvalidVersion) else 6
    print(f"# {wheel.name} is SGLang {version}: list and snapshot", flush=True)
    LIST.write_text(listed(LIST.read_text("utf-8"), version, sha256(wheel.read_bytes())), "utf-8")
    capture_snapshots.capture(wheel, SNAPSHOTS / f"sglang-{version}.json")
    compare(wheel, before(LIST.read_text("utf-8"), version))
    status = tool("matrix", version, "--wheels", str(options.wheels))
    print(NEXT.format(version=version), end="")
    return status


def listed(text: str, version: str, digest: str) -> str:
    """The list with this release in it, in the order of versions; comments stay above."""
    lines = text.splitlines(keepends=True)
    head = [line for line in lines if not line.startswith(f"{fetch_wheels.SGLANG}==")]
    rows = {_version(line): line for line in lines if line not in head}
    rows[version] = f"{fetch_wheels.SGLANG}=={version} --hash=sha256:{digest}\n"
    return "".join([*head, *(rows[name] for name in sorted(rows, key=Version))])


def before(text: str, version: str) -> str:
    """The release before this one that has a snapshot; empty where it is the first."""
    names = [_version(line) for line in text.splitlines() if line.startswith(f"{fetch_wheels.SGLANG}==")]
    older = [name for name in names if Version(name) < Version(version) and name not in capture_snapshots.TOO_OLD]
    return older[-1] if older else ""


def compare(wheel: Path, older: str) -> None:
    """Print what differs from the release before, and what that means for each step."""
    if not older:
        return
    print(f"\n# against {older}", flush=True)
    with tempfile.TemporaryDirectory(prefix="add-release-") as scratch:
        site = Path(scratch) / "site"
        wheel_tree.unpack(wheel, site)
        tool("--root", str(site), "diff", "--snapshot", older)


def tool(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "ddtree_patcher", *arguments], check=False).returncode


def _version(line: str) -> str:
    return line.split()[0].partition("==")[2]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
