"""What is seen of real runs: on a terminal, in colours, while they last; and what other tools make of a diff."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyte
import pytest

from sglang_releases import SUPPORTED

pytestmark = pytest.mark.wheels

TOOL = str(Path(sys.executable).parent / "ddtree-patch")
VERSION = "0.5.18"
ENDS = (SUPPORTED[0], SUPPORTED[-1])
_WISHES = ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "CI", "GITHUB_ACTIONS", "COLUMNS", "LINES", "DDTREE_PATCH_STATE_DIR")


def environment(**wishes: str) -> dict[str, str]:
    """Without the wishes of who runs the tests."""
    return {name: value for name, value in os.environ.items() if name not in _WISHES} | wishes


@dataclass(frozen=True)
class Seen:
    """What a terminal was sent, and what is on it in the end."""

    sent: str
    screen: pyte.Screen

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display if line.strip()]

    def row(self, begins: str) -> list[pyte.screens.Char]:
        """The letters, with their colours, of the first line that begins so."""
        number, *_ = [number for number, line in enumerate(self.screen.display) if line.startswith(begins)]
        return [self.screen.buffer[number][column] for column in range(self.screen.columns)]


def on_a_terminal(columns: int, *arguments: str | os.PathLike[str], **wishes: str) -> Seen:
    """The command on a terminal that is as wide, and long enough for all that is printed."""
    control, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 500, columns, 0, 0))
    env = environment(TERM="xterm-256color", **wishes)
    with subprocess.Popen([TOOL, *arguments], stdin=terminal, stdout=terminal, stderr=terminal, env=env):
        os.close(terminal)
        sent = b""
        while True:
            try:
                sent += os.read(control, 65536)
            except OSError:  # the last writer is gone
                break
    os.close(control)
    screen = pyte.Screen(columns, 500)
    stream = pyte.ByteStream(screen)
    stream.feed(sent)
    return Seen(sent.decode(), screen)


@pytest.mark.parametrize("columns", [60, 120])
def test_a_diff_in_colours_and_the_summary_last(columns: int, shared_tree: Callable[[str], Path]) -> None:
    seen = on_a_terminal(columns, "--root", shared_tree(VERSION), "plan", "--diff", "--through", "choices")
    assert re.fullmatch(r"plan: ok  ddtree [\d.]+(?: \(\w{12}\))?  3 pending, 1 not_needed, 1 warning", seen.lines[-1])
    added, removed = (
        seen.row("+    def is_ddtree(self)"),
        seen.row("-        return self == SpeculativeAlgorithm.DFLASH"),
    )
    assert (added[0].fg, added[0].bold, removed[0].fg, removed[0].bold) == ("green", True, "red", True)
    assert {letter.fg for letter in added[5:8]} == {"magenta"}  # def
    assert {(letter.fg, letter.bold) for letter in added[9:18]} == {("green", True)}  # its name
    assert removed[columns // 2].bg == "default" and {item.bg for item in added} == {"default"}
    assert all(line in "\n".join(seen.screen.display) for line in ("@@ -36,6 +36,7 @@", "+    DDTREE = auto()"))


def test_a_moving_line_while_it_lasts(wheel: Callable[[str], Path]) -> None:
    seen = on_a_terminal(60, "matrix", "--wheels", wheel(VERSION).parent, *ENDS)
    assert re.search(r"sglang \S+ \(2 of 2\) +(?:\x1b\[\w+)*\d+ s", seen.sent)
    assert not [line for line in seen.lines if "of 2" in line]
    assert [line.split()[:2] for line in seen.lines[1:3]] == [[version, "applies"] for version in ENDS]
    assert re.match(r"matrix: ok  ddtree .* 2 applies", seen.lines[-1])


def test_what_is_over_soon_has_none(shared_tree: Callable[[str], Path]) -> None:
    seen = on_a_terminal(80, "--root", shared_tree(VERSION), "status")
    assert "\x1b[2K" not in seen.sent and "\x1b[?25l" not in seen.sent
    assert seen.lines[-1].startswith("status: clean")


def test_colour_by_force_and_plain_lines_in_a_log(shared_tree: Callable[[str], Path]) -> None:
    command = [TOOL, "--root", str(shared_tree(VERSION)), "plan", "--diff", "--through", "enum"]
    env = environment(TERM="dumb", FORCE_COLOR="1", CI="true")
    forced = subprocess.run(command, capture_output=True, text=True, env=env | {"TERM": "xterm"}, check=True)
    assert "\x1b[1;32m+" in forced.stdout
    plain = subprocess.run(command, capture_output=True, text=True, env=env | {"FORCE_COLOR": ""}, check=True)
    assert "\x1b" not in plain.stdout + plain.stderr + forced.stderr
    assert all(line.startswith("… ") for line in plain.stderr.splitlines())
    # A log has no width: 120 columns hold a step and what it does.
    (row,) = [line for line in plain.stdout.splitlines() if line.startswith("enum ")]
    assert "DDTREE is a member of SpeculativeAlgorithm" in row


@pytest.mark.parametrize("version", ENDS)
def test_a_diff_is_a_patch(version: str, tree: Callable[..., Path], run_cli: Any) -> None:
    """Taken as it is printed, report and all, it makes the very bytes that are planned."""
    site = tree(version)
    planned = run_cli("--root", site, "plan").expect(0).json["files"]
    command = [TOOL, "--root", str(site), "plan", "--diff"]
    printed = subprocess.run(command, capture_output=True, env=environment(), check=True).stdout
    programs = [["git", "apply"], ["patch", "-p1", "--quiet"]]
    there = [program for program in programs if shutil.which(program[0])]
    assert there, "neither git nor patch is installed"
    for program in there:
        copy = tree(version, name=program[0])
        env = environment(GIT_CEILING_DIRECTORIES=str(copy.parent))
        subprocess.run(program, input=printed, cwd=copy, env=env, check=True)
        made = {item["path"]: sha256((copy / item["path"]).read_bytes()).hexdigest() for item in planned}
        assert made == {item["path"]: item["desired_sha256"] for item in planned}, program
