"""The command line teaches: help with examples for every command, the nearest name for a wrong one, usage errors."""

from __future__ import annotations

import re
import shlex

import click
import pytest
from click.testing import CliRunner

from ddtree_patcher.cli import main


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


def examples(command: list[str]) -> list[str]:
    """The command lines below the help of a command."""
    output = CliRunner().invoke(main, [*command, "--help"]).output
    lines = output.partition("Examples:\n")[2].split("\n\n")[0].splitlines()
    return [line.strip() for line in lines if not line.strip().startswith("#")]


@pytest.mark.parametrize("command", [[], *commands()], ids=" ".join)
def test_every_command_has_help_with_examples_that_60_columns_hold(command: list[str]) -> None:
    result = CliRunner().invoke(main, [*command, "--help"], terminal_width=60)
    assert result.exit_code == 0
    assert examples(command)
    assert max(map(len, result.output.splitlines())) <= 60


@pytest.mark.parametrize("command", [[], *commands()], ids=" ".join)
def test_every_example_is_a_command_line(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsed as it is written; what the command would do is left out."""
    monkeypatch.setattr(click.Path, "convert", lambda kind, value, parameter, context: value)  # the files are not here
    for example in examples(command):
        (line,) = re.findall(r"(?<![.\w])ddtree-patch ([^|>)]+)", example)
        assert (_parsed(shlex.split(line))[: len(command)] or command) == command


def _parsed(words: list[str]) -> list[str]:
    """The names of the commands that a command line calls. Raises what click refuses."""
    context, found = main.make_context("ddtree-patch", list(words)), list[str]()
    while isinstance(context.command, click.Group):
        name, command, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
        assert name is not None and command is not None
        found.append(name)
        context = command.make_context(name, rest, parent=context)
    return found


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["aply"], "No such command 'aply'. Did you mean 'apply'?"),
        (["snapshot", "lst"], "No such command 'lst'. Did you mean 'list'?"),
        (["plan", "--dif"], "'--diff'"),
        (["plan", "--rot", "x"], "Did you mean '--root'? --root goes before the command"),
        (["--patchset", "dtree", "plan"], "Did you mean 'ddtree'?"),
        (["frobnicate"], "No such command 'frobnicate'.\n"),
    ],
    ids=lambda item: " ".join(item) if isinstance(item, list) else "",
)
def test_the_nearest_name_is_suggested(arguments: list[str], says: str) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert says in result.output


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
