"""Finds the one place that a codemod speaks of, or says which places came near."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ..model import StepOutcome
from . import pattern
from .result import Candidate, NotFound
from .source import Definition, Source, blocks_of, statements_in
from .target import Target

Node = TypeVar("Node", ast.stmt, ast.expr)
Scope = ast.Module | Definition

_NEAR = 0.6  # similarity from which a place is worth showing
_SHOWN = 5
_TELLING = 24  # characters from which a bare call or `return` says by itself which place it is


@dataclass(frozen=True, slots=True)
class Anchor:
    """Where to look: ``scope`` is a dotted definition ("" is the module); ``statement`` a pattern inside it.

    ``within`` narrows the search to the compound statement of that shape (empty: the whole scope). What is put beside a
    statement asks that it stands directly there: see :func:`find_place`.
    """

    statement: str  # Python with the wildcard `...`: any expression, any body, any further arguments
    scope: str = ""  # the dotted definition that it is in; empty: the module
    within: str = ""  # the compound statement around it, as a pattern; empty: anywhere in the scope

    def __str__(self) -> str:
        place = f" in {self.scope}" if self.scope else ""
        inside = f" inside `{_headline(self.within)}`" if self.within else ""
        return f"`{_headline(self.statement)}`{inside}{place}"

    def target(self) -> Target:
        return Target(self.scope, statement=self.statement, within=self.within)


def find_scope(source: Source, scope: str) -> Scope | NotFound:
    """The one class or function of that dotted name, or the module for ``""``."""
    if not scope:
        return source.tree
    found = source.definitions.get(scope, [])
    if len(found) == 1:
        return found[0]
    if found:
        return _ambiguous(source, f"one definition of {scope}", found)
    return NotFound(StepOutcome.ANCHOR_MISSING, f"a definition of {scope}", tuple(_namesakes(source, scope)[:_SHOWN]))


def _namesakes(source: Source, scope: str) -> list[Candidate]:
    """The definitions that have the last name in another scope; where there are none, those of similar names."""
    last = scope.rpartition(".")[2]
    same = [node for name, nodes in source.definitions.items() if name.rpartition(".")[2] == last for node in nodes]
    names = [] if same else difflib.get_close_matches(scope, source.definitions, n=_SHOWN, cutoff=_NEAR)
    alike = [(source.definitions[name][0], difflib.SequenceMatcher(a=name, b=scope).ratio()) for name in names]
    return [candidate(source, node, score) for node, score in [(node, 1.0) for node in same] + alike]


def described(source: Source, anchor: Anchor) -> list[ast.stmt]:
    """The statements that the anchor describes; none where its scope, or what it is within, is not exactly one."""
    holders: Sequence[ast.AST] = source.definitions.get(anchor.scope, []) if anchor.scope else [source.tree]
    for text in filter(None, (anchor.within, anchor.statement)):
        if len(holders) != 1:
            return []
        wanted = pattern.statement(text)
        holders = [node for node in statements_in(holders[0]) if pattern.matches(wanted, node)]
    return [node for node in holders if isinstance(node, ast.stmt)]


def find_statement(source: Source, anchor: Anchor) -> ast.stmt | NotFound:
    """The one statement that the anchor describes, or the places that come near, which takes its time."""
    if len(found := described(source, anchor)) == 1:
        return found[0]
    wanted = pattern.statement(anchor.statement)
    scope = _narrow(source, anchor)
    if isinstance(scope, NotFound):
        return _with_places(scope, _elsewhere(source, wanted, None))
    return _only(
        source,
        str(anchor),
        [node for node in statements_in(scope) if pattern.matches(wanted, node)],
        lambda: [*_elsewhere(source, wanted, scope), *_nearby(source, scope, wanted)],
        scope,
    )


def find_place(source: Source, anchor: Anchor) -> ast.stmt | NotFound:
    """The one statement that the anchor describes, where nothing decides whether it is carried out.

    Under a condition, loop or ``try`` of its own, inside of what the anchor names, it is not carried out when it was,
    and what is put beside it would not be either. ``with`` decides nothing.
    """
    found, scope = find_statement(source, anchor), _narrow(source, anchor)
    if isinstance(found, NotFound) or isinstance(scope, NotFound):
        return found
    if (outer := _decider(source, scope, found)) is None:
        return found
    header = source.line(outer.lineno).decode("utf-8", "replace").strip()
    wanted = f"{anchor} on its own (line {outer.lineno} decides on it: `{header}`)"
    return NotFound(StepOutcome.ANCHOR_MISSING, wanted, (candidate(source, found),))


def _decider(source: Source, scope: ast.AST, node: ast.stmt) -> ast.stmt | None:
    """The nearest condition, loop or ``try`` between a scope and a statement in it."""
    deciding = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.Match)
    for outer in source.ancestors(node):
        if outer is scope:
            return None
        if isinstance(outer, deciding):
            return outer
    return None


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
    return _only(source, label, found, lambda: _nearby_expressions(source, where, wanted), where)


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
        scope,
    )


def _only(
    source: Source, wanted: str, found: list[Node], near: Callable[[], Iterable[Candidate]], scope: ast.AST
) -> Node | NotFound:
    if len(found) == 1:
        return found[0]
    if found:
        return _ambiguous(source, f"exactly one {wanted}", found)
    places = list(near())[:_SHOWN]
    if not places and isinstance(scope, ast.stmt):
        places = [candidate(source, scope, 0.0)]
    return NotFound(StepOutcome.ANCHOR_MISSING, wanted, tuple(places))


def _with_places(missing: NotFound, better: Iterable[Candidate]) -> NotFound:
    """A scope that is not there, with the places that hold what was looked for in it."""
    places = tuple(dict.fromkeys([*better, *missing.candidates]))
    return replace(missing, candidates=places[:_SHOWN]) if missing.outcome is StepOutcome.ANCHOR_MISSING else missing


def _ambiguous(source: Source, wanted: str, found: Sequence[ast.stmt | ast.expr]) -> NotFound:
    return NotFound(StepOutcome.ANCHOR_AMBIGUOUS, wanted, tuple(candidate(source, node) for node in found))


def candidate(source: Source, node: ast.stmt | ast.expr, score: float = 1.0) -> Candidate:
    """A node as a place to show: its line, and the code that says which place this is."""
    text = source.line(node.lineno).decode("utf-8", "replace").strip()
    if text.endswith(("(", "[", "{")):  # what is called or held says which place this is
        text += source.line(node.lineno + 1).decode("utf-8", "replace").strip()
    return Candidate(node.lineno, text, round(score, 2))


def _elsewhere(source: Source, wanted: ast.stmt, scope: ast.AST | None) -> Iterator[Candidate]:
    """Statements of that very shape outside of the scope. One that names nothing of its own says nothing there."""
    if not isinstance(wanted, ast.Return | ast.Pass | ast.Expr) or len(ast.unparse(wanted)) > _TELLING:
        inside = set(statements_in(scope)) if scope else set()
        found = [item for item in statements_in(source.tree) if item not in inside and pattern.matches(wanted, item)]
        middle = getattr(scope, "lineno", 1)
        yield from (candidate(source, node) for node in sorted(found, key=lambda node: abs(node.lineno - middle)))


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
    bound = assigned_names(wanted) if isinstance(wanted, ast.stmt) else []
    for node in nodes:
        headline = _headline(ast.unparse(node))
        score = max(_ratio(matcher, headline), _ratio(matcher, headline[: len(target)]))
        if bound and isinstance(node, ast.stmt) and assigned_names(node) == bound:
            score = (1 + score) / 2  # what binds the same name is the same thing, however it is written
        if score >= _NEAR:
            scored.append((score, node))
    scored.sort(key=lambda pair: (-pair[0], pair[1].lineno))
    for score, node in scored[:_SHOWN]:
        yield candidate(source, node, score)


def _ratio(matcher: difflib.SequenceMatcher[str], text: str) -> float:
    matcher.set_seq1(text)
    return matcher.ratio() if matcher.quick_ratio() >= _NEAR else 0.0


def _blocks(scope: ast.AST) -> Iterator[list[ast.stmt]]:
    yield from blocks_of(scope)
    for statement in statements_in(scope):
        yield from blocks_of(statement)


def _headline(code: str) -> str:
    return code.strip().partition("\n")[0]
