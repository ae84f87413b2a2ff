"""The command line teaches: help with an example for every command, completion for three shells, usage errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ddtree_patcher.cli import main

PROGRAM = Path(sys.executable).with_name("ddtree-patch")


def commands() -> list[list[str]]:
    """Every command, groups opened."""
    context = click.Context(main)
    found: list[list[str]] = []
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        if isinstance(command, click.Group):
            found += [[name, inner] for inner in command.list_commands(context)]
        else:
            found.append([name])
    return found


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_every_command_has_help_with_an_example(command: list[str]) -> None:
    result = CliRunner().invoke(main, [*command, "--help"])
    assert result.exit_code == 0
    assert "Example: " in result.output


def test_the_help_of_all_lists_commands_and_exit_codes() -> None:
    output = CliRunner().invoke(main, ["--help"]).output
    for word in ("apply", "diff", "doctor", "plan", "revert", "snapshot", "status", "verify", "environment_refused"):
        assert word in output


@pytest.mark.parametrize(
    "arguments", [["aply"], ["apply", "--verify", "most"], ["verify", "--tier"], ["--format", "xml"]]
)
def test_a_wrong_command_line_ends_with_2(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_a_shared_option_after_the_command_is_told_where_it_goes() -> None:
    result = CliRunner().invoke(main, ["apply", "--root", "somewhere"])
    assert result.exit_code == 2
    assert "--root goes before the command: ddtree-patch --root … apply" in result.output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_and_what_it_asks_for(shell: str) -> None:
    script = CliRunner().invoke(main, ["completion", shell])
    assert script.exit_code == 0
    assert "_DDTREE_PATCH_COMPLETE" in script.output
    environment = {**os.environ, "_DDTREE_PATCH_COMPLETE": f"{shell}_complete"}
    words = {"COMP_WORDS": "ddtree-patch re", "COMP_CWORD": "re" if shell == "fish" else "1"}
    done = subprocess.run(
        [str(PROGRAM)], env={**environment, **words}, capture_output=True, encoding="utf-8", check=False
    )
    assert "revert" in done.stdout
    assert "apply" not in done.stdout


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="there is no bash")
def test_the_bash_script_is_valid_bash() -> None:
    script = CliRunner().invoke(main, ["completion", "bash"]).output
    done = subprocess.run(["/bin/bash", "-n"], input=script, encoding="utf-8", capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
