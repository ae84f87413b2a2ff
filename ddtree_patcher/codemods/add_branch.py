"""``add_branch``: one more ``elif`` of an ``if`` statement."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ..model import StepOutcome
from . import pattern
from .anchors import Anchor, candidate, find_statement
from .insertion import at_line
from .region import Region, render
from .result import AlreadySo, Found, Location, NotFound
from .source import Source


@dataclass(frozen=True, slots=True)
class AddBranch:
    """Put ``elif test:`` with ``code`` behind the last branch of the ``if`` at ``anchor``, before its ``else``.

    So it is asked after all branches that are there: what they take, they keep. A branch of the same test with other
    code is refused, as half upstreamed.
    """

    path: str  # the file, relative to the folder that holds the package
    anchor: Anchor  # the first ``if`` of the chain
    test: str  # the condition of the new branch, as an expression on one line
    code: str  # its statements, at column 0

    def locate(self, source: Source) -> Location:
        statement = find_statement(source, self.anchor)
        if isinstance(statement, NotFound):
            return statement
        if not isinstance(statement, ast.If) or _is_elif(source, statement):
            near = (candidate(source, statement),)
            return NotFound(StepOutcome.ANCHOR_MISSING, f"the first if of a chain: {self.anchor}", near)
        test = pattern.expression(self.test)
        same = [item for item in _chain(statement) if pattern.same(test, item.test)]
        if not same:
            return self._add(source, statement)
        wanted = pattern.statements(self.code)
        if len(same[0].body) == len(wanted) and all(map(pattern.same, wanted, same[0].body)):
            return AlreadySo(same[0].lineno)
        near = (candidate(source, same[0]),)
        wished = f"`elif {self.test}` as this patchset writes it, or not at all"
        return NotFound(StepOutcome.HALF_UPSTREAMED, wished, near)

    def _add(self, source: Source, statement: ast.If) -> Found:
        Region.around(source, statement)  # refuses what libcst does not reproduce
        margin = source.line(statement.lineno)[: statement.col_offset]
        head = margin + f"elif {self.test}:".encode() + source.newline
        body = render(source, self.code, margin.decode() + source.indent)
        return at_line(source, _end(source, statement, margin), head + body)

    def symbols(self) -> tuple[str, ...]:
        return (self.anchor.scope,)


def _is_elif(source: Source, statement: ast.If) -> bool:
    return source.text_of(statement).startswith(b"elif")


def _chain(statement: ast.If) -> list[ast.If]:
    """The ``if`` and its ``elif`` branches, in order; an ``if`` that is alone in the ``else`` reads like one."""
    chain = [statement]
    while len(chain[-1].orelse) == 1 and isinstance(below := chain[-1].orelse[0], ast.If):
        chain.append(below)
    return chain


def _end(source: Source, statement: ast.If, margin: bytes) -> int:
    """The line before which a new branch comes: that of the ``else`` or of the comment above it, if there is one."""
    last = statement
    for branch in _chain(statement)[1:]:
        if not _is_elif(source, branch):
            break
        last = branch
    first = line = (last.body[-1].end_lineno or last.lineno) + 1
    if not last.orelse:
        return line
    while not source.line(line).startswith(margin + b"else"):
        line += 1
    while line > first and source.line(line - 1).startswith(margin + b"#"):
        line -= 1
    return line
