"""What the codemods that add a member to a class share: is it there, wholly, partly or not at all?"""

from __future__ import annotations

import ast
import difflib

from ..model import StepOutcome
from . import pattern
from .anchors import Scope, assigned_names, candidate, find_scope
from .insertion import insert_after
from .result import AlreadySo, Location, NotFound
from .source import Definition, Source


def add_members(source: Source, cls: str, code: str, after: str, *, blank_lines: int) -> Location:
    """Put the members that ``code`` defines behind the member ``after`` of a class."""
    scope = find_scope(source, cls)
    if isinstance(scope, NotFound):
        return scope
    if (there := presence(source, scope, code)) is not None:
        return there
    place = find_member(source, scope, after, f"member {after} of {cls}")
    return place if isinstance(place, NotFound) else insert_after(source, place, code, blank_lines=blank_lines)


def names_of(statement: ast.stmt) -> list[str]:
    """The names that one statement of a class or module body binds."""
    if isinstance(statement, Definition):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
    return assigned_names(statement)


def member_not_found(source: Source, scope: Scope, wanted: str, name: str) -> NotFound:
    """No member of that name: the ones whose names come near."""
    members = {bound: node for node in scope.body for bound in names_of(node)}
    near = difflib.get_close_matches(name, members, n=5, cutoff=0.6)
    return NotFound(StepOutcome.ANCHOR_MISSING, wanted, tuple(candidate(source, members[item]) for item in near))


def find_member(source: Source, scope: Scope, name: str, wanted: str) -> ast.stmt | NotFound:
    """The one statement of a body that binds a name."""
    found = [node for node in scope.body if name in names_of(node)]
    if len(found) == 1:
        return found[0]
    if not found:
        return member_not_found(source, scope, wanted, name)
    lines = tuple(candidate(source, node) for node in found)
    return NotFound(StepOutcome.ANCHOR_AMBIGUOUS, f"exactly one {wanted}", lines)


def presence(source: Source, scope: Scope, code: str) -> AlreadySo | NotFound | None:
    """Whether ``code`` is in a body already, or a part or another version of it; ``None``: nothing of it is."""
    wanted = pattern.statements(code)
    body = {name: node for node in scope.body for name in names_of(node)}
    existing = [body[name] for node in wanted for name in names_of(node) if name in body]
    if not existing:
        return None
    if len(existing) == len(wanted) and all(map(pattern.same, wanted, existing)):
        return AlreadySo(existing[0].lineno)
    names = ", ".join(name for node in wanted for name in names_of(node))
    near = tuple(candidate(source, node) for node in existing)
    wanted_words = f"{names} as this patchset defines it, or not at all"
    return NotFound(StepOutcome.HALF_UPSTREAMED, wanted_words, near, f"# this, or nothing of it\n{code.strip()}")
