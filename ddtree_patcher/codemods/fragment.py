"""Fragments: code to insert, kept in real Python files so that ruff and mypy read it."""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass
from pathlib import Path

from .source import Definition, Source


@dataclass(frozen=True)
class Fragments:
    """The definitions of one fragment file."""

    source: Source

    @classmethod
    def load(cls, path: Path) -> Fragments:
        return cls(Source.parse(path.read_bytes().replace(b"\r\n", b"\n"), path.name))

    def definition(self, name: str) -> str:
        """The whole text of a class, function or method (dotted name), decorators included, at column 0."""
        node = self._node(name)
        first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
        return self._lines(first, node.end_lineno or node.lineno)

    def body(self, name: str) -> str:
        """The statements inside a function or class, without its docstring, at column 0."""
        statements = self._node(name).body
        if ast.get_docstring(self._node(name), clean=False) is not None:
            statements = statements[1:]
        first = self._leading_comment(statements[0].lineno)
        return self._lines(first, statements[-1].end_lineno or statements[-1].lineno)

    def _node(self, name: str) -> Definition:
        (node,) = self.source.definitions[name]
        return node

    def _leading_comment(self, line: int) -> int:
        while self.source.line(line - 1).lstrip().startswith(b"#"):
            line -= 1
        return line

    def _lines(self, first: int, last: int) -> str:
        starts = self.source.line_starts
        return textwrap.dedent(self.source.data[starts[first - 1] : starts[last]].decode("utf-8"))
