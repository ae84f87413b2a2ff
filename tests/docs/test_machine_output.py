"""docs/machine-output.md: its commands are command lines of this tool, and its table of schemas is complete."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from ddtree_patcher.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "machine-output.md").read_text("utf-8")
BLOCKS = re.findall(r"```(?:sh|yaml)\n(.*?)```", PAGE, flags=re.S)
LINES = [line for block in BLOCKS for line in re.findall(r"(ddtree-patch .*)", block)]


@pytest.mark.parametrize("line", LINES)
def test_a_command_of_the_page_is_one(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line)
    place = next(number for number, word in enumerate(words) if word in main.list_commands(click.Context(main)))
    with main.make_context(words[0], words[1 : place + 1]) as context:
        command = main.get_command(context, words[place])
        assert command is not None
        command.make_context(words[place], words[place + 1 :], parent=context)


def test_a_wrong_command_would_be_seen() -> None:
    command = main.get_command(click.Context(main), "plan")
    assert command is not None
    with pytest.raises(click.NoSuchOption):
        command.make_context("plan", ["--sariff", "x"])


def test_every_schema_is_on_the_page() -> None:
    assert len(LINES) >= 6
    for path in (ROOT / "docs" / "schema").glob("*.json"):
        assert f"(schema/{path.name})" in PAGE, path.name
