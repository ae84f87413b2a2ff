"""docs/images/*.svg: what the tool prints on a terminal, from real runs on real wheels.

The same bytes on every machine: no path, no time, no digest of the patchset, one width, fixed names inside. For a
conflict one line of SGLang is written differently, as a release might have it.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

import fetch_wheels
import wheel_tree

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
WIDTH = 100  # columns: what a README has room for

_HEADING = "checked by "  # the line that names this machine's interpreter
_DIGEST = re.compile(r" \([0-9a-f]{12}\)(?=\x1b|$)", flags=re.M)


@dataclass(frozen=True)
class Edit:
    """One line of a release, written differently."""

    path: str
    before: str
    after: str

    def make(self, site: Path) -> None:
        text = (site / self.path).read_text("utf-8")
        assert text.count(self.before) == 1, f"{self.path} has {text.count(self.before)} times {self.before!r}"
        (site / self.path).write_text(text.replace(self.before, self.after), "utf-8")


@dataclass(frozen=True)
class Shot:
    """One picture: a command line, and the release that it is run on (empty: on wheels)."""

    name: str
    arguments: Sequence[str]
    version: str = ""
    edit: Edit | None = None


SHOTS = (
    Shot("plan-diff", ("plan", "--diff", "--through", "enum"), "0.5.20"),
    Shot(
        "conflict",
        ("-q", "plan", "--allow-drift"),
        "0.5.23",
        edit=Edit(
            "sglang/srt/layers/attention/hybrid_linear_attn_backend.py",
            "self.topk = get_spec().speculative_eagle_topk or 0",
            "self.topk = max(get_spec().speculative_eagle_topk, 0)",
        ),
    ),
    Shot("matrix", ("matrix",)),
)


def take(shot: Shot, folder: Path) -> str:
    """The picture of one run, as SVG. ``folder`` holds the unpacked release, which is edited; else the wheels."""
    if shot.edit:
        shot.edit.make(folder)
    place = ["--root", str(folder), *shot.arguments] if shot.version else [*shot.arguments, "--wheels", str(folder)]
    title = " ".join(["ddtree-patch", *shot.arguments])
    return _drawn(_without_machine(_run(place), str(folder.parent)), title, f"ddtree-patch-{shot.name}")


def _run(arguments: Sequence[str]) -> str:
    """What a terminal of ``WIDTH`` columns is sent."""
    unwanted = ("NO_COLOR", "COLORTERM", "CI", "GITHUB_ACTIONS", "DDTREE_PATCH_STATE_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in unwanted}
    environment |= {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": str(WIDTH), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "ddtree_patcher", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False)
    if done.returncode not in (0, 4):
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def _without_machine(printed: str, home: str) -> str:
    """What was printed, but for what differs from machine to machine and from one edit of the patchset to the next."""
    lines = printed.strip("\n").split("\n")
    kept = [line for line in lines if not Text.from_ansi(line).plain.startswith(_HEADING)]
    return _DIGEST.sub("", "\n".join(kept).replace(home, "~"))


def _drawn(printed: str, title: str, name: str) -> str:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in printed.split("\n"):
        console.print(Text.from_ansi(line, overflow="fold"))
    svg = console.export_svg(title=title, theme=SVG_EXPORT_THEME, unique_id=name)
    # No font is fetched by who looks at it, and spaces are kept where a viewer would trim them.
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.S).replace("<svg ", '<svg xml:space="preserve" ', 1)


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    for shot in SHOTS:
        with tempfile.TemporaryDirectory(prefix="ddtree-patch-screenshot-") as scratch:
            folder = Path(scratch) / "site" if shot.version else fetch_wheels.WHEELS
            if shot.version:
                wheel_tree.unpack(fetch_wheels.fetch(shot.version), folder)
            (IMAGES / f"{shot.name}.svg").write_text(take(shot, folder), "utf-8")
        print(f"docs/images/{shot.name}.svg")


if __name__ == "__main__":
    main()
