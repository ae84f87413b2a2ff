"""Completion in bash, zsh and fish: in the shells that are installed, and by their protocol everywhere."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from ddtree_patcher import patchset as patchsets
from ddtree_patcher.cli import main

PROGRAM = Path(sys.executable).with_name("ddtree-patch")
SHELLS = ("bash", "zsh", "fish")
REPOSITORY = Path(__file__).resolve().parents[2]


def asked(shell: str, line: str, **options: str) -> str:
    """What the tool answers when a shell asks it how the last word of a line goes on."""
    *before, last = line.split(" ")
    words = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(before))},
        "zsh": {"COMP_WORDS": line, "COMP_CWORD": str(len(before))},
        "fish": {"COMP_WORDS": line, "COMP_CWORD": last},
    }[shell]
    environment = {**os.environ, **words, "_DDTREE_PATCH_COMPLETE": f"{shell}_complete", **options}
    done = subprocess.run([str(PROGRAM)], env=environment, capture_output=True, encoding="utf-8", check=False)
    assert done.stderr == ""
    return done.stdout


def offered(shell: str, line: str) -> set[str]:
    """The words of that answer, and ``<file>`` or ``<dir>`` where the shell is to look for one."""
    answer = [item for item in asked(shell, line).splitlines() if item]
    pairs = zip(answer[::3], answer[1::3], strict=False) if shell == "zsh" else (item.split(",", 1) for item in answer)
    return {word.split("\t")[0] if kind == "plain" else f"<{kind}>" for kind, word in pairs}


# Line -> words that are offered, and words that are not.
LINES = {
    "ddtree-patch re": ({"revert"}, {"apply"}),
    "ddtree-patch snapshot ": ({"capture", "list", "show"}, {"plan"}),
    "ddtree-patch plan --d": ({"--diff"}, {"--check"}),
    "ddtree-patch verify --tier ": ({"static", "import", "smoke", "e2e"}, set()),
    "ddtree-patch plan --step w": ({"worker-import", "worker-branch", "widths"}, {"enum"}),
    "ddtree-patch apply --through e": ({"enum"}, {"widths"}),
    "ddtree-patch diff --snapshot 0.5.1": ({"0.5.11", "0.5.12.post1", "<file>"}, {"0.5.23", "auto"}),
    "ddtree-patch matrix 0.5.11 0.5.2": ({"0.5.20"}, {"0.5.11", "<file>"}),
    "ddtree-patch --patchset d": ({"ddtree", "<dir>"}, set()),
    "ddtree-patch --root ": ({"<dir>"}, set()),
    "ddtree-patch --python ": ({"<file>"}, set()),
    "ddtree-patch apply ": ({"<file>"}, set()),
    "ddtree-patch completion ": (set(SHELLS), set()),
}


@pytest.mark.parametrize("line", LINES)
def test_what_bash_is_offered(line: str) -> None:
    there, absent = LINES[line]
    found = offered("bash", line)
    assert there <= found and not absent & found


@pytest.mark.parametrize("line", ["ddtree-patch re", "ddtree-patch plan --step w", "ddtree-patch --root "])
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_others_are_offered_the_same(shell: str, line: str) -> None:
    assert offered(shell, line) == offered("bash", line)


def test_steps_are_those_of_the_patchset_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text("raise SystemExit\nA = Step(id='mine', summary='')\nB = Step(id=name())\n")
    assert offered("bash", f"ddtree-patch --patchset {tmp_path} plan --step ") == {"mine"}
    assert offered("bash", "ddtree-patch --patchset nowhere plan --step ") == set()


def test_the_names_that_are_read_are_the_steps_that_are_loaded() -> None:
    folder = REPOSITORY / "patchsets" / patchsets.DEFAULT
    assert set(patchsets.step_names(folder)) == set(patchsets.load(str(folder)).patchset.by_id)


def test_it_is_quick_and_loads_nothing_heavy(tmp_path: Path) -> None:
    line = "ddtree-patch plan --step w"
    asked("bash", line)
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        asked("bash", line)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(times) < 0.3, times
    profile = asked_imports(line)
    assert "click.shell_completion" in profile
    assert not profile & {"libcst", "torch", "sglang", "rich", "packaging"}


def asked_imports(line: str) -> set[str]:
    environment = {
        **os.environ,
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
        "_DDTREE_PATCH_COMPLETE": "bash_complete",
        "PYTHONPROFILEIMPORTTIME": "1",
    }
    done = subprocess.run([str(PROGRAM)], env=environment, capture_output=True, encoding="utf-8", check=False)
    assert "widths" in done.stdout
    return {item.rpartition("|")[2].strip() for item in done.stderr.splitlines()}


# --- the shells themselves -----------------------------------------------------------------------------------------

# Shell -> how it is started with nothing of its user's, and what a user puts into its start-up file.
STARTED = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(ddtree-patch completion bash)"'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -Uz compinit && compinit -u -D; eval "$(ddtree-patch completion zsh)"'),
    "fish": (["fish", "--no-config", "-i"], "ddtree-patch completion fish | source"),
}


class Shell:
    """An interactive shell on a terminal of its own."""

    def __init__(self, command: list[str], folder: Path) -> None:
        environment = {
            "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "TERM": "xterm",
            "PS1": "$ ",
        }
        self.process, self.control = pty.fork()  # with a terminal that it controls: fish asks for one
        if self.process == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, environment)

    def type(self, keys: str, until: str, patience: float = 20.0) -> str:
        """What is shown once ``keys`` were typed, up to the time when it has ``until`` (a pattern) in it."""
        os.write(self.control, keys.encode())
        seen, end = "", time.monotonic() + patience
        while not re.search(until, seen):
            left = end - time.monotonic()
            assert left > 0, f"no {until!r} in {seen!r}"
            if select.select([self.control], [], [], left)[0]:
                seen += re.sub(
                    r"\x1b(?:\[[\d;?>]*[a-zA-Z]|[=>]|\][^\x07]*\x07|\([AB])",
                    "",
                    os.read(self.control, 65536).decode("utf-8", "replace"),
                )
        return seen

    def close(self) -> None:
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.control)


@contextlib.contextmanager
def started(name: str, folder: Path) -> Iterator[Shell]:
    command, start_up = STARTED[name]
    shell = Shell(command, folder)
    try:
        shell.type(f"{start_up}; echo rea''dy\r", "\n\r?ready")
        yield shell
    finally:
        shell.close()


@pytest.mark.parametrize("name", SHELLS)
def test_tab_in_a_real_shell(name: str, tmp_path: Path) -> None:
    if not shutil.which(name):
        pytest.skip(f"{name} is not installed; its protocol is tested above")
    with started(name, tmp_path) as shell:
        shell.type("ddtree-patch rev\t", "ddtree-patch revert ")
        shell.type("--disc\t", "--discard-edits ")
        shell.type("\x15ddtree-patch plan --step node\t", "node-commit")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_valid(shell: str) -> None:
    script = CliRunner().invoke(main, ["completion", shell])
    assert script.exit_code == 0 and "_DDTREE_PATCH_COMPLETE" in script.output
    if shutil.which(shell):
        check = [shell, "--no-execute" if shell == "fish" else "-n"]
        done = subprocess.run(check, input=script.output, encoding="utf-8", capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
