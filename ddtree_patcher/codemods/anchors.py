"""Finds the one place that a codemod speaks of, or says which places came near."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..model import StepOutcome
from . import pattern
from .result import Candidate, NotFound
from .source import Definition, Source, blocks_of, statements_in

Node = TypeVar("Node", ast.stmt, ast.expr)
Scope = ast.Module | Definition

_NEAR = 0.6  # similarity from which a place is worth showing
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Anchor:
    """Where to look: ``scope`` is a dotted definition ("" is the module); ``statement`` a pattern inside it.

    ``within`` narrows the search to the compound statement of that shape (empty: the whole scope).
    """

    statement: str  # Python with the wildcard `...`: any expression, any body, any further arguments
    scope: str = ""  # the dotted definition that it is in; empty: the module
    within: str = ""  # the compound statement around it, as a pattern; empty: anywhere in the scope

    def __str__(self) -> str:
        place = f" in {self.scope}" if self.scope else ""
        inside = f" inside `{_headline(self.within)}`" if self.within else ""
        return f"`{_headline(self.statement)}`{inside}{place}"


def find_scope(source: Source, scope: str) -> Scope | NotFound:
    """The one class or function of that dotted name, or the module for ``""``."""
    if not scope:
        return source.tree
    found = source.definitions.get(scope, [])
    if len(found) == 1:
        return found[0]
    if found:
        return _ambiguous(source, f"one definition of {scope}", found)
    last = scope.rpartition(".")[2]
    near = [node for name, nodes in source.definitions.items() if name.rpartition(".")[2] == last for node in nodes]
    if not near:
        names = difflib.get_close_matches(scope, source.definitions, n=_SHOWN, cutoff=_NEAR)
        near = [source.definitions[name][0] for name in names]
    return NotFound(
        StepOutcome.ANCHOR_MISSING,
        f"a definition of {scope}",
        tuple(candidate(source, node) for node in near[:_SHOWN]),
    )


def find_statement(source: Source, anchor: Anchor) -> ast.stmt | NotFound:
    """The one statement that the anchor describes."""
    scope = _narrow(source, anchor)
    if isinstance(scope, NotFound):
        return scope
    wanted = pattern.statement(anchor.statement)
    return _only(
        source,
        str(anchor),
        [node for node in statements_in(scope) if pattern.matches(wanted, node)],
        lambda: _nearby(source, scope, wanted),
    )


def find_expression(
    source: Source, scope: str, text: str, usable: Callable[[Source, ast.expr], bool] | None = None
) -> ast.expr | NotFound:
    """The one expression of that shape in a scope; ``usable`` may restrict which count."""
    where = find_scope(source, scope)
    if isinstance(where, NotFound):
        return where
    wanted = pattern.expression(text)
    found = [
        node
        for node in ast.walk(where)
        if isinstance(node, ast.expr) and pattern.matches(wanted, node) and (usable is None or usable(source, node))
    ]
    label = f"`{text}`" + (f" in {scope}" if scope else "")
    return _only(source, label, found, lambda: _nearby_expressions(source, where, wanted))


def holds_statements(source: Source, scope: Scope, code: Sequence[ast.stmt]) -> int:
    """The line where these statements stand, one after the other, in one block of a scope; 0 if nowhere."""
    for block in _blocks(scope):
        for index in range(len(block) - len(code) + 1):
            if all(pattern.same(want, have) for want, have in zip(code, block[index:], strict=False)):
                return block[index].lineno
    return 0


def assigned_names(node: ast.stmt) -> list[str]:
    """The plain names that an assignment or annotated field binds."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _narrow(source: Source, anchor: Anchor) -> ast.AST | NotFound:
    scope = find_scope(source, anchor.scope)
    if isinstance(scope, NotFound) or not anchor.within:
        return scope
    wanted = pattern.statement(anchor.within)
    outer = Anchor(anchor.within, anchor.scope)
    return _only(
        source,
        str(outer),
        [node for node in statements_in(scope) if pattern.matches(wanted, node)],
        lambda: _nearby(source, scope, wanted),
    )


def _only(source: Source, wanted: str, found: list[Node], near: Callable[[], Iterable[Candidate]]) -> Node | NotFound:
    if len(found) == 1:
        return found[0]
    if found:
        return _ambiguous(source, f"exactly one {wanted}", found)
    return NotFound(StepOutcome.ANCHOR_MISSING, wanted, tuple(near()))


def _ambiguous(source: Source, wanted: str, found: Sequence[ast.stmt | ast.expr]) -> NotFound:
    return NotFound(StepOutcome.ANCHOR_AMBIGUOUS, wanted, tuple(candidate(source, node) for node in found))


def candidate(source: Source, node: ast.stmt | ast.expr, score: float = 1.0) -> Candidate:
    """A node as a place to show: its line, and the code that says which place this is."""
    text = source.line(node.lineno).decode("utf-8", "replace").strip()
    if text.endswith(("(", "[", "{")):  # what is called or held says which place this is
        text += source.line(node.lineno + 1).decode("utf-8", "replace").strip()
    return Candidate(node.lineno, text, round(score, 2))


def _nearby(source: Source, scope: ast.AST, wanted: ast.stmt) -> Iterator[Candidate]:
    return _ranked(source, wanted, [node for node in statements_in(scope) if type(node) is type(wanted)])


def _nearby_expressions(source: Source, scope: ast.AST, wanted: ast.expr) -> Iterator[Candidate]:
    return _ranked(
        source, wanted, [node for node in ast.walk(scope) if isinstance(node, ast.expr) and type(node) is type(wanted)]
    )


def _ranked(source: Source, wanted: ast.stmt | ast.expr, nodes: Sequence[ast.stmt | ast.expr]) -> Iterator[Candidate]:
    target = _headline(ast.unparse(wanted)).replace(", ...", "").replace("...", "")
    matcher = difflib.SequenceMatcher(b=target, autojunk=False)
    scored = []
    for node in nodes:
        matcher.set_seq1(_headline(ast.unparse(node))[: len(target)])
        if matcher.quick_ratio() >= _NEAR and (score := matcher.ratio()) >= _NEAR:
            scored.append((score, node))
    scored.sort(key=lambda pair: (-pair[0], pair[1].lineno))
    for score, node in scored[:_SHOWN]:
        yield candidate(source, node, score)


def _blocks(scope: ast.AST) -> Iterator[list[ast.stmt]]:
    yield from blocks_of(scope)
    for statement in statements_in(scope):
        yield from blocks_of(statement)


def _headline(code: str) -> str:
    return code.strip().partition("\n")[0]
