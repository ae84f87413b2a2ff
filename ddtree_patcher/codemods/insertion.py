"""Puts rendered lines before or after a statement: what the inserting codemods share."""

from __future__ import annotations

import ast
from collections.abc import Callable

from ..model import StepOutcome
from . import pattern
from .anchors import Anchor, candidate, find_scope, find_statement, holds_statements
from .region import Region, first_line, render, stands_alone
from .result import AlreadySo, Found, Location, NotFound, Splice
from .source import Source, statements_in

Insert = Callable[[Source, ast.stmt, str], Found | NotFound]


def insert_at(source: Source, anchor: Anchor, code: str, insert: Insert) -> Location:
    """Insert statements at an anchor unless they stand, one after the other, in its scope already."""
    scope = find_scope(source, anchor.scope)
    if isinstance(scope, NotFound):
        return scope
    if line := holds_statements(source, scope, pattern.statements(code)):
        return AlreadySo(line)
    statement = find_statement(source, anchor)
    return statement if isinstance(statement, NotFound) else insert(source, statement, code)


def insert_after(source: Source, statement: ast.stmt, code: str, *, blank_lines: int = 0) -> Found | NotFound:
    """New statements on the lines after one, indented like it."""
    return _insert(source, statement, code, (statement.end_lineno or statement.lineno) + 1, blank_lines, 0)


def insert_before(source: Source, statement: ast.stmt, code: str, *, blank_lines: int = 0) -> Found | NotFound:
    """New statements on the lines before one and before the comment that belongs to it."""
    line = first_line(statement)
    margin = source.line(line)[: statement.col_offset]
    return _insert(source, statement, code, _comment_above(source, line, margin), 0, blank_lines)


def _comment_above(source: Source, line: int, margin: bytes) -> int:
    """Where the comment directly above a line begins; the line itself where there is none."""

    def looks_like_one(number: int) -> bool:
        return number > 0 and source.line(number).startswith(margin + b"#")

    if not looks_like_one(line - 1):
        return line
    # A line of a string that ends above may look like a comment.
    ends = (item.end_lineno or 0 for item in statements_in(source.tree))
    ended = max((end for end in ends if end < line), default=0)
    while line - 1 > ended and looks_like_one(line - 1):
        line -= 1
    return line


def append(source: Source, code: str, *, blank_lines: int = 2) -> Found:
    """New top-level statements at the end of a file."""
    if source.tree.body:
        Region.around(source, source.tree.body[-1])
    return at_line(source, source.line_count + 1, render(source, code, ""), blank_lines, 0)


def _insert(source: Source, statement: ast.stmt, code: str, line: int, above: int, below: int) -> Found | NotFound:
    if not stands_alone(source, statement):
        wanted = f"`{source.line(statement.lineno).decode().strip()}` on lines of its own"
        near = candidate(source, statement)
        return NotFound(StepOutcome.ANCHOR_MISSING, wanted, (near,))
    Region.around(source, statement)  # refuses what libcst does not reproduce
    margin = source.line(statement.lineno)[: statement.col_offset].decode()
    return at_line(source, line, render(source, code, margin), above, below)


def at_line(source: Source, line: int, text: bytes, above: int = 0, below: int = 0) -> Found:
    """Rendered lines before a line of the file, or behind its last one."""
    newline = source.newline
    text = newline * above + text + newline * below
    offset = source.line_starts[line - 1] if line <= source.line_count else len(source.data)
    unfinished = offset == len(source.data) and source.data and not source.data.endswith((b"\n", b"\r"))
    if unfinished:  # a file without a final newline keeps having none
        text = newline + text.removesuffix(newline)
    return Found(Splice(offset, offset, text), line)
