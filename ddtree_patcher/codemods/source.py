"""The bytes of one Python file with an index of its statements: parsed once, asked many times.

Positions come from :mod:`ast` (lines are 1-based, columns are UTF-8 bytes), so that finding a place in an
8,000-line file costs one fast parse; libcst then parses only the lines that change (see :mod:`.region`).
"""

from __future__ import annotations

import ast
import codecs
import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from ..errors import SourceError

BOM = b"\xef\xbb\xbf"

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
# What ends a line for Python's own reader; form feeds do not.
_LINE_END = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True)
class Source:
    """One file's bytes. ``path`` is used in messages alone; ``tree`` is the module."""

    data: bytes
    tree: ast.Module = field(repr=False)
    path: str = ""

    @classmethod
    def parse(cls, data: bytes, path: str = "") -> Source:
        """Refuse, with :class:`SourceError`, what cannot be edited safely: not UTF-8, or not Python."""
        _require_utf8(data, path)
        try:
            tree = ast.parse(data, filename=path or "<source>")
        except (RecursionError, MemoryError) as error:  # what ast says of code that is nested out of all measure
            raise SourceError(
                f"{path or 'the file'} is nested too deeply for Python's parser",
                path=path,
                remedy="Reinstall the package, or restore this file; nothing was written.",
            ) from error
        except (SyntaxError, ValueError) as error:
            raise SourceError(
                f"{path or 'the file'} is not valid Python: {getattr(error, 'msg', error)}",
                path=path,
                line=getattr(error, "lineno", 0) or 0,
                remedy="Reinstall the package, or restore this file; nothing was written.",
            ) from error
        return cls(data, tree, path)

    @cached_property
    def line_starts(self) -> list[int]:
        """Byte offset of every line, and the length of the file as the last entry."""
        starts = [len(BOM) if self.data.startswith(BOM) else 0]
        starts.extend(match.end() for match in _LINE_END.finditer(self.data))
        if starts[-1] != len(self.data):
            starts.append(len(self.data))
        return starts

    @property
    def line_count(self) -> int:
        return len(self.line_starts) - 1

    @cached_property
    def newline(self) -> bytes:
        """The newline that this file uses: that of its first line, else ``\\n``."""
        found = _LINE_END.search(self.data)
        return found.group() if found else b"\n"

    @cached_property
    def indent(self) -> str:
        """One level of indentation as this file writes it: that of the first indented body, else four spaces."""
        for node in ast.walk(self.tree):
            body = getattr(node, "body", None)
            if isinstance(node, Definition) and isinstance(body, list) and body[0].lineno > node.lineno:
                own, inner = self._margin(node.lineno), self._margin(body[0].lineno)
                if inner.startswith(own) and inner != own and b"\f" not in inner:
                    return inner[len(own) :].decode()
        return "    "

    def _margin(self, line: int) -> bytes:
        text = self.line(line)
        return text[: len(text) - len(text.lstrip(b" \t\f"))]

    def line_at(self, offset: int) -> int:
        """The line, 1-based, in which a byte lies."""
        return max(1, bisect_right(self.line_starts, offset, hi=self.line_count))

    def line(self, number: int) -> bytes:
        """The bytes of one line, its newline included."""
        return self.data[self.line_starts[number - 1] : self.line_starts[number]]

    def text_of(self, node: ast.stmt | ast.expr) -> bytes:
        """The bytes of one node."""
        return self.data[self.offset(node.lineno, node.col_offset) : self.end_offset(node)]

    def offset(self, line: int, column: int) -> int:
        return self.line_starts[line - 1] + column

    def end_offset(self, node: ast.stmt | ast.expr) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.offset(node.end_lineno, node.end_col_offset)

    def ancestors(self, node: ast.stmt | ast.expr) -> list[ast.AST]:
        """The nodes around a node, innermost first, the module last."""
        chain: list[ast.AST] = [self.tree]
        while chain[0] is not node:
            inner = [child for child in ast.iter_child_nodes(chain[0]) if child is node or _may_hold(child, node)]
            chain[:0] = inner if len(inner) == 1 else [next(child for child in inner if _holds(child, node))]
        return chain[1:]

    @cached_property
    def definitions(self) -> dict[str, list[Definition]]:
        """Every class and function by its dotted name inside this module; overloads share a name."""
        found: dict[str, list[Definition]] = {}
        for name, node in _walk_definitions(self.tree.body, ""):
            found.setdefault(name, []).append(node)
        return found


def _walk_definitions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, Definition]]:
    for node in body:
        if isinstance(node, Definition):
            name = f"{prefix}{node.name}"
            yield name, node
            yield from _walk_definitions(node.body, f"{name}.")
        else:
            for block in blocks_of(node):
                yield from _walk_definitions(block, prefix)


def blocks_of(node: ast.AST) -> list[list[ast.stmt]]:
    """The statement lists directly inside one node: body, else, except clauses, finally, match cases."""
    blocks = [
        getattr(node, name) for name in ("body", "orelse", "finalbody") if isinstance(getattr(node, name, None), list)
    ]
    for holder in [*getattr(node, "handlers", ()), *getattr(node, "cases", ())]:
        blocks.append(holder.body)
    return [block for block in blocks if block]


def statements_in(node: ast.AST) -> Iterator[ast.stmt]:
    """Every statement below one node, outermost first, in source order."""
    for block in blocks_of(node):
        for statement in block:
            yield statement
            yield from statements_in(statement)


def _may_hold(outer: ast.AST, inner: ast.stmt | ast.expr) -> bool:
    """Whether a node's lines enclose another's; nodes without lines of their own (``arguments``) may."""
    first, last = getattr(outer, "lineno", 0), getattr(outer, "end_lineno", None)
    decorators = [item.lineno for item in getattr(outer, "decorator_list", ())]
    return last is None or (min([first, *decorators]) <= inner.lineno and (inner.end_lineno or 0) <= last)


def _holds(outer: ast.AST, inner: ast.AST) -> bool:
    return outer is inner or any(node is inner for node in ast.walk(outer))


def _require_utf8(data: bytes, path: str) -> None:
    remedy = "Restore this file from its wheel; nothing was written."
    if b"\x00" in data:
        raise SourceError(f"{path or 'the file'} holds NUL bytes: it is not a text file", path=path, remedy=remedy)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        if codecs.lookup(encoding).name.removesuffix("-sig") != "utf-8":
            raise SourceError(f"{path or 'the file'} is encoded in {encoding}, not UTF-8", path=path, remedy=remedy)
        data.decode("utf-8")
    except (SyntaxError, UnicodeDecodeError) as error:
        raise SourceError(f"{path or 'the file'} is not valid UTF-8: {error}", path=path, remedy=remedy) from error
