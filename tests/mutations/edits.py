"""Edits of the files of a tree, as upstream makes them. Each changes exactly what it means to, or fails."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import black

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass
class Files:
    """The files of a tree with the edits made so far. Paths are relative to ``sglang/srt``."""

    site: Path
    changed: dict[str, str] = field(default_factory=dict)  # path -> text; "" is a file that is gone
    crlf: set[str] = field(default_factory=set)

    def text(self, path: str) -> str:
        if path not in self.changed:
            self.changed[path] = (self.site / "sglang/srt" / path).read_bytes().decode()
        return self.changed[path]

    def put(self, path: str, text: str) -> None:
        if text:
            ast.parse(text)  # what upstream ships is Python
        assert text != self.changed.get(path), f"nothing changed in {path}"
        self.changed[path] = text

    def bytes(self) -> Iterator[tuple[str, bytes]]:
        """The path inside the tree and the content of every file that changed; empty for one that is gone."""
        for path, text in self.changed.items():
            yield f"sglang/srt/{path}", (text.replace("\n", "\r\n") if path in self.crlf else text).encode()


Change = Callable[[Files], None]


def replace(path: str, old: str, new: str, times: int = 1) -> Change:
    def change(files: Files) -> None:
        text = files.text(path)
        assert text.count(old) == times, f"{old!r} stands {text.count(old)} times in {path}, not {times}"
        files.put(path, text.replace(old, new))

    return change


def rename(path: str, old: str, new: str) -> Change:
    """A word, wherever it stands in the file."""

    def change(files: Files) -> None:
        text = files.text(path)
        assert re.search(rf"\b{old}\b", text) and not re.search(rf"\b{new}\b", text), f"{old} -> {new} in {path}"
        files.put(path, re.sub(rf"\b{old}\b", new, text))

    return change


def rename_inside(path: str, scope: str, old: str, new: str) -> Change:
    """A word, wherever it stands in one definition."""

    def change(files: Files) -> None:
        head, code, tail = _cut(files.text(path), scope)
        assert re.search(rf"\b{old}\b", code), f"no {old} in {scope}"
        files.put(path, head + re.sub(rf"\b{old}\b", new, code) + tail)

    return change


def wrap(path: str, line: str, header: str, footer: str = "") -> Change:
    """One statement under an ``if``, ``try`` or ``with`` of its own."""

    def change(files: Files) -> None:
        before, statement, after = _statement(files.text(path), line)
        margin = _margin(statement[0])
        inner = [f"    {item}" if item.strip() else item for item in statement]
        closing = [f"{margin}{footer}\n"] if footer else []
        files.put(path, "".join([*before, f"{margin}{header}\n", *inner, *closing, *after]))

    return change


def insert(path: str, line: str, new: str, *, after: bool = False) -> Change:
    """New lines before (or after) the statement that begins with that line, at its margin."""

    def change(files: Files) -> None:
        before, statement, behind = _statement(files.text(path), line)
        added = [f"{_margin(statement[0])}{item}\n" for item in new.splitlines()]
        files.put(path, "".join([*before, *([*statement, *added] if after else [*added, *statement]), *behind]))

    return change


def duplicate(path: str, line: str) -> Change:
    def change(files: Files) -> None:
        before, statement, after = _statement(files.text(path), line)
        files.put(path, "".join([*before, *statement, *statement, *after]))

    return change


def remove(path: str, line: str) -> Change:
    def change(files: Files) -> None:
        before, _, after = _statement(files.text(path), line)
        files.put(path, "".join([*before, *after]))

    return change


def move_behind(path: str, line: str, other: str) -> Change:
    """A statement from its place to the place behind another one."""

    def change(files: Files) -> None:
        before, statement, after = _statement(files.text(path), line)
        rest = "".join([*before, *after])
        before, target, after = _statement(rest, other)
        files.put(path, "".join([*before, *target, *statement, *after]))

    return change


def move_to_file(path: str, scope: str, new_path: str, head: str = "") -> Change:
    """A top-level function to a new module, from which the first one imports it."""

    def change(files: Files) -> None:
        before, code, after = _cut(files.text(path), scope)
        module = "sglang.srt." + new_path.removesuffix(".py").replace("/", ".")
        files.put(path, f"{before}from {module} import {scope}  # noqa: E402\n{after}")
        files.put(new_path, f"{head}\n\n{code}")

    return change


def move_file(path: str, new_path: str) -> Change:
    def change(files: Files) -> None:
        files.put(new_path, files.text(path))
        files.changed[path] = ""

    return change


def duplicate_definition(path: str, scope: str) -> Change:
    def change(files: Files) -> None:
        before, code, after = _cut(files.text(path), scope)
        files.put(path, f"{before}{code}\n\n{code}{after}")

    return change


def reformat(path: str, width: int) -> Change:
    """By black, with lines of another length and without the trailing commas that keep lists open."""

    def change(files: Files) -> None:
        mode = black.Mode(line_length=width, magic_trailing_comma=False)
        files.put(path, black.format_str(files.text(path), mode=mode))

    return change


def tabs(path: str) -> Change:
    def change(files: Files) -> None:
        def tabbed(found: re.Match[str]) -> str:
            return "\t" * (len(found.group()) // 4) + " " * (len(found.group()) % 4)

        files.put(path, re.sub(r"(?m)^ {4,}", tabbed, files.text(path)))

    return change


def windows(path: str) -> Change:
    """CRLF at the end of every line."""

    def change(files: Files) -> None:
        assert "\r" not in files.text(path)
        files.crlf.add(path)

    return change


def both(*changes: Change) -> Change:
    def change(files: Files) -> None:
        for one in changes:
            one(files)

    return change


def definition(text: str, scope: str) -> Definition:
    """The one definition of a dotted name."""
    found = list(_definitions(ast.parse(text).body, scope))
    assert len(found) == 1, f"{scope} is defined {len(found)} times"
    return found[0]


def _definitions(body: list[ast.stmt], scope: str) -> Iterator[Definition]:
    name, _, rest = scope.partition(".")
    for node in body:
        if isinstance(node, Definition) and node.name == name:
            if rest:
                yield from _definitions(node.body, rest)
            else:
                yield node


def _cut(text: str, scope: str) -> tuple[str, str, str]:
    """What stands before a definition, its lines, and what stands behind it."""
    node = definition(text, scope)
    lines = text.splitlines(keepends=True)
    first = min([node.lineno, *(item.lineno for item in node.decorator_list)]) - 1
    return "".join(lines[:first]), "".join(lines[first : node.end_lineno]), "".join(lines[node.end_lineno :])


def _statement(text: str, line: str) -> tuple[list[str], list[str], list[str]]:
    """The lines before the one statement that begins with such a line, its own, and those behind it."""
    lines = text.splitlines(keepends=True)
    found = [number for number, item in enumerate(lines, 1) if item.strip() == line]
    assert len(found) == 1, f"{line!r} is there {len(found)} times"
    statements = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt))
    ends = [node.end_lineno for node in statements if node.lineno == found[0]]
    assert ends, f"no statement begins with {line!r}"
    last = max(end or 0 for end in ends)
    return lines[: found[0] - 1], lines[found[0] - 1 : last], lines[last:]


def _margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
