"""Every command in the documents is run by a test, and prints what is shown; those in the prose are understood."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from document_blocks import BLOCKS, Elsewhere, Entry, Run
from pages import COMMANDS, DOCUMENTS, ROOT, Block, blocks, commands, name_of, spans
from scratch import Scratch

from ddtree_patcher.cli import main

TABLE = "tests/docs/document_blocks.py"
FOUND: dict[str, list[Block]] = {}
for _document in DOCUMENTS:
    for _block in blocks(_document):
        if _block.language in COMMANDS:
            FOUND.setdefault(_block.place, []).append(_block)
ENTRIES = [
    pytest.param(block, entry, id=f"{block.place}-{number}")
    for place, found in FOUND.items()
    for number, (block, entry) in enumerate(zip(found, BLOCKS.get(place, ()), strict=False), 1)
    if isinstance(entry, Run)
]


@pytest.mark.parametrize("place", sorted({*FOUND, *BLOCKS}))
def test_every_block_is_run_or_says_who_does(place: str) -> None:
    found, known = FOUND.get(place, []), BLOCKS.get(place, ())
    first = [block.text.partition("\n")[0] for block in found]
    assert len(found) == len(known), (
        f"{place} has {len(found)} blocks of commands ({first}), and {len(known)} entries in BLOCKS of {TABLE}: give "
        'each a Run("clean"), or another context of tests/docs/scratch.py, or an Elsewhere(why not, what runs it)'
    )


@pytest.mark.wheels
@pytest.mark.parametrize(("block", "entry"), ENTRIES)
def test_the_commands_do_what_is_shown(
    block: Block, entry: Run, tmp_path: Path, shared_tree: Callable[[str], Path], wheel: Callable[[str], Path]
) -> None:
    scratch = Scratch(tmp_path, shared_tree, wheel)
    getattr(scratch, entry.context)()
    used: set[str] = set()
    for command in commands(block):
        exception = next((start for start in entry.without if command.line.startswith(start)), "")
        ending = next((start for start in entry.ends if command.line.startswith(start)), "")
        used |= {exception, ending}
        if exception:
            continue
        done = scratch.run(command.line)
        assert done.returncode == entry.ends.get(ending, 0), f"{command.line}\n{done.stdout}\n{done.stderr}"
        if command.output is not None:
            assert shows(command.output, done.stdout), f"{command.line} prints\n{done.stdout}"
    unused = {*entry.without, *entry.ends} - used
    assert not unused, f"{TABLE}: no line of {block.place} begins with {unused}"


def shows(shown: str, printed: str) -> bool:
    """Whether a document shows what was printed. ``…`` alone on a line stands for any; spaces at ends do not count."""
    lines = [line.rstrip() for line in shown.strip().splitlines()]
    parts = ["(?:.*\n)*" if line == "…" else f"{re.escape(line)}\n" for line in lines]
    text = "".join(f"{line.rstrip()}\n" for line in printed.strip().splitlines())
    return re.fullmatch("".join(parts), text) is not None


def test_what_is_shown_is_compared() -> None:
    assert shows("a\n…\nz", "a  \nb\nc\nz\n") and shows("…", "anything\n") and shows("a\n…\n", "a\n")
    assert not shows("a\nz", "a\nb\nz\n") and not shows("a", "b\n") and not shows("a", "")


def references() -> Iterator[str]:
    for entries in BLOCKS.values():
        for entry in entries:
            yield from [entry.held_by] if isinstance(entry, Elsewhere) else entry.without.values()


@pytest.mark.parametrize("held_by", sorted(set(references())))
def test_what_runs_them_otherwise_is_there(held_by: str) -> None:
    if held_by.startswith("make "):
        assert re.search(rf"^{held_by[5:]}:", (ROOT / "Makefile").read_text("utf-8"), flags=re.M)
        return
    path, _, name = held_by.partition("::")
    text = (ROOT / path).read_text("utf-8")
    assert re.search(rf"^ *def {name or 'test_'}", text, flags=re.M), held_by


def lines_of_the_tool() -> Iterator[tuple[str, str]]:
    """(document, command line): those of blocks, and those in the prose, with the tool's name or without."""
    names = set(main.list_commands(click.Context(main)))
    for document in DOCUMENTS:
        typed = [
            command.line
            for block in blocks(document)
            if block.language in COMMANDS
            for command in commands(block)
            if command.line.startswith("ddtree-patch ")
        ]
        said = [
            span if span.startswith("ddtree-patch ") else f"ddtree-patch {span}"
            for span in spans(document)
            if span.partition(" ")[0] in {"ddtree-patch", *names} and " " in span and "…/" not in span
        ]
        for line in dict.fromkeys([*typed, *said]):
            yield name_of(document), line


@pytest.mark.parametrize(("document", "line"), list(dict.fromkeys(lines_of_the_tool())))
def test_command_lines_are_understood(document: str, line: str) -> None:
    """Commands and options exist; what is given to them is not looked at."""
    words = shlex.split(line.partition(" | ")[0].partition(" > ")[0])[1:]
    understood(main, words, line)


def understood(command: click.Command, words: list[str], line: str) -> None:
    context = click.Context(command, allow_interspersed_args=command.allow_interspersed_args)
    if words and words[0] == "COMMAND":  # any of them
        words = ["status", *words[1:]]
    rest: list[str] = []
    try:
        _, rest, _ = command.make_parser(context).parse_args(args=list(words))
    except click.BadOptionUsage as error:  # the prose names an option without its value
        assert words[-1] == error.option_name, f"`{line}`: {error.format_message()}"
    except click.UsageError as error:
        pytest.fail(f"`{line}`: {error.format_message()}")
    if not isinstance(command, click.Group):
        assert not rest, f"`{line}`: nothing takes {rest}"
    elif rest:
        inner = command.get_command(context, rest[0].partition("|")[0])
        assert inner is not None, f"`{line}`: there is no command {rest[0]}"
        understood(inner, rest[1:], line)


def test_what_is_wrong_is_found() -> None:
    for wrong in ("staus", "status --chek", "snapshot take", "--rot x status"):
        with pytest.raises((pytest.fail.Exception, AssertionError)):
            understood(main, wrong.split(), wrong)


def test_every_entry_names_a_context() -> None:
    entries: list[Entry] = [entry for entries in BLOCKS.values() for entry in entries]
    named = {entry.context for entry in entries if isinstance(entry, Run)}
    assert named <= set(vars(Scratch)), named - set(vars(Scratch))
