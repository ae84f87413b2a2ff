"""The lines of one statement, parsed by libcst: the only part of a file that a codemod rewrites.

libcst reproduces what it parsed byte for byte. A region that it does not reproduce is refused, so what a codemod
returns differs from the file in the nodes that it replaced and in nothing else.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TypeVar

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from ..errors import SourceError
from .result import Splice
from .source import Source

CstNode = TypeVar("CstNode", bound=cst.CSTNode)


@dataclass(frozen=True)
class Region:
    """Whole lines ``data[start:end]`` of one statement; ``prefix`` is the header put before an indented one."""

    source: Source
    first_line: int
    start: int
    end: int
    prefix: bytes
    module: cst.Module

    @classmethod
    def around(cls, source: Source, node: ast.stmt | ast.expr) -> Region:
        """The smallest region around a node; refuses what libcst does not reproduce."""
        statement = _own_lines(source, node)
        first, last = first_line(statement), statement.end_lineno or statement.lineno
        start, end = source.line_starts[first - 1], source.line_starts[last]
        prefix = b"if 1:" + source.newline if statement.col_offset else b""
        text = prefix + source.data[start:end]
        try:
            module = cst.parse_module(text, config=parser_config(source))
        except cst.ParserSyntaxError as error:
            raise _not_reproduced(source, first, f"libcst cannot parse it: {error.message}") from error
        if module.bytes != text:
            raise _not_reproduced(source, first, "libcst prints it differently")
        return cls(source, first, start, end, prefix, module)

    def find(self, kind: type[CstNode], node: ast.stmt | ast.expr) -> CstNode:
        """The libcst node of that kind at the place of an ast node."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = self._place(node.lineno, node.col_offset)
        end = self._place(node.end_lineno, node.end_col_offset)
        positions = MetadataWrapper(self.module, unsafe_skip_copy=True).resolve(PositionProvider)
        for candidate, place in positions.items():
            span = (place.start.line, place.start.column), (place.end.line, place.end.column)
            if isinstance(candidate, kind) and span == (start, end):
                return candidate
        raise _not_reproduced(self.source, node.lineno, f"libcst has no {kind.__name__} there")

    def _place(self, line: int, column: int) -> tuple[int, int]:
        """An ast position (UTF-8 bytes, this file) as a libcst one (characters, this region)."""
        before = self.source.line(line)[:column].decode("utf-8")
        return line - self.first_line + (2 if self.prefix else 1), len(before)

    def replace(self, old: cst.CSTNode, new: cst.CSTNode) -> Splice:
        """The change that puts one node in the place of another."""
        changed = self.module.deep_replace(old, new)
        assert isinstance(changed, cst.Module)
        return _trimmed(Splice(self.start, self.end, changed.bytes[len(self.prefix) :]), self.source.data)


def parser_config(source: Source) -> cst.PartialParserConfig:
    newline = source.newline.decode("ascii")
    assert newline in ("\n", "\r\n", "\r")
    return cst.PartialParserConfig(encoding="utf-8", default_newline=newline, default_indent=source.indent)


def render(source: Source, code: str, margin: str) -> bytes:
    """Statements as this file would write them: its newline, its indentation, ``margin`` before each line."""
    newline = source.newline.decode("ascii")
    lines = code.replace("\r\n", "\n").replace("\r", "\n").strip("\n").split("\n")
    written = cst.PartialParserConfig(encoding="utf-8", default_newline=parser_config(source).default_newline)
    module = cst.parse_module(newline.join(lines) + newline, config=written).with_changes(default_indent=source.indent)
    if not margin:
        return module.bytes
    body = _with_header(module)
    block = cst.If(test=cst.Integer("1"), body=cst.IndentedBlock(body=body, indent=margin))
    return module.with_changes(header=[], body=[block]).bytes.removeprefix(b"if 1:" + source.newline)


def parse_expression(source: Source, code: str) -> cst.BaseExpression:
    return cst.parse_expression(code, config=parser_config(source))


def in_place_of(node: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
    """An expression in the parentheses of the one that it replaces: without them the text around could bind tighter."""
    return new.with_changes(lpar=node.lpar, rpar=node.rpar) if node.lpar and not new.lpar else new


def first_line(statement: ast.stmt) -> int:
    """Where a statement begins, its decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(item.lineno for item in decorators)])


def stands_alone(source: Source, statement: ast.stmt) -> bool:
    """Whether no other code shares the statement's lines, so that lines can be put before and after it."""
    before = (
        source.line(statement.lineno)[: statement.col_offset] if not getattr(statement, "decorator_list", ()) else b""
    )
    last = statement.end_lineno or statement.lineno
    after = source.line(last)[statement.end_col_offset :].strip()
    return (
        not before.strip()
        and (not after or after.startswith(b"#"))
        and not source.text_of(statement).startswith(b"elif")
    )


def _own_lines(source: Source, node: ast.stmt | ast.expr) -> ast.stmt:
    """The nearest enclosing statement that shares its lines with nothing else."""
    for candidate in (node, *source.ancestors(node)):
        if isinstance(candidate, ast.stmt) and stands_alone(source, candidate):
            return candidate
    raise _not_reproduced(source, node.lineno, "its statements share lines with others")


def _with_header(module: cst.Module) -> list[cst.BaseStatement]:
    """The statements of a module, the comments at its top given to the first, blank lines left without a margin."""
    body: list[cst.BaseStatement] = []
    lines = list(module.header)
    for statement in module.body:
        assert isinstance(statement, cst.SimpleStatementLine | cst.BaseCompoundStatement)
        lines += statement.leading_lines
        blank = [line if line.comment else line.with_changes(indent=False) for line in lines]
        body.append(statement.with_changes(leading_lines=blank))
        lines = []
    return body


def _trimmed(splice: Splice, data: bytes) -> Splice:
    """The same change without the bytes that it leaves as they are."""
    old, new = data[splice.start : splice.end], splice.new
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    return Splice(splice.start + head, splice.end - tail, new[head : len(new) - tail])


def _shared(left: bytes, right: bytes) -> int:
    """How many bytes two strings begin with in common."""
    shortest = min(len(left), len(right))
    return next((index for index in range(shortest) if left[index] != right[index]), shortest)


def _not_reproduced(source: Source, line: int, why: str) -> SourceError:
    return SourceError(
        f"{source.path or 'the file'} does not round-trip through libcst at line {line}: {why}",
        path=source.path,
        line=line,
        remedy="Report this file: the tool changes only what it can reproduce byte for byte. Nothing was written.",
    )
