"""The main job on a real SGLang: patch it, prove it, put it back. ``make demo`` runs it in the tool's environment."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

import wheel_tree
from fetch_wheels import PLATFORM, FetchError, fetch

VERSION = "0.5.11"
SITE = Path(".cache") / "demo" / "site"
COMMANDS = ("doctor", "diff", "plan --diff", "apply", "verify", "status", "revert", "status")


def main() -> None:
    os.chdir(Path(__file__).resolve().parent.parent)
    print(f"# SGLang {VERSION} from the package index", flush=True)
    try:
        wheel = fetch(VERSION)
    except FetchError as error:
        sys.exit(f"demo: {error}")
    install(wheel)
    before = beside(wheel)
    for command in COMMANDS:
        run([str(Path(sys.executable).parent / "ddtree-patch"), "--root", str(SITE), *command.split()])
    compare(wheel, before)


def install(wheel: Path) -> None:
    """As pip installs it, in a folder of its own; the wheel's platform is named where this Python is another."""
    shutil.rmtree(SITE.parent, ignore_errors=True)
    suits = parse_wheel_filename(wheel.name)[3].intersection(sys_tags())
    quiet = ("--quiet", "--disable-pip-version-check", "--no-input")
    platform = () if suits else PLATFORM
    wheel_path = os.path.relpath(wheel)
    run([sys.executable, "-m", "pip", "install", *quiet, "--no-deps", *platform, "--target", str(SITE), wheel_path])


def beside(wheel: Path) -> Mapping[str, bytes]:
    """What pip wrote itself: RECORD, and every file that is not the wheel's (INSTALLER, bytecode, scripts)."""
    shipped = wheel_tree.names(wheel)
    own = [name for name in wheel_tree.files(SITE) if name not in shipped or name.endswith("/RECORD")]
    return {name: (SITE / name).read_bytes() for name in own}


def compare(wheel: Path, before: Mapping[str, bytes]) -> None:
    print(
        "\n# every file against the wheel; RECORD and what else pip wrote, against its bytes before apply", flush=True
    )
    found = list(wheel_tree.differences(wheel, SITE, before))
    if found:
        sys.exit("\n".join(("demo: not as before apply:", *found)))
    ours = len(wheel_tree.names(wheel))
    print(f"{ours} files compared, and {len(before) - 1} more that pip made: all are byte-identical to the wheel,")
    print("RECORD is byte-identical to what pip wrote, and no other file is left")


def run(command: list[str]) -> None:
    """Say it, do it, and go on only where it worked."""
    shown = [os.path.relpath(part) if os.path.isabs(part) else part for part in command]
    print(f"\n$ {shlex.join(shown)}", flush=True)
    status = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
    if status:
        sys.exit(f"demo: this ended with status {status}: {shlex.join(shown)}")


if __name__ == "__main__":
    main()
