"""Patterns: snippets of Python that describe the shape of a statement or expression.

A pattern is written as code and compared as syntax trees, so that layout, quotes and comments do not matter.
``...`` is the only wildcard: as an expression it stands for any expression, as a whole body for any body (and for
whatever ``else`` follows it), and as the last positional argument of a call for any further arguments.
"""

from __future__ import annotations

import ast
from functools import lru_cache

_IGNORED_FIELDS = frozenset({"ctx", "type_comment", "kind", "type_params"})


@lru_cache(maxsize=512)
def statement(pattern: str) -> ast.stmt:
    """The one statement of a pattern."""
    body = ast.parse(pattern.strip()).body
    if len(body) != 1:
        raise ValueError(f"a statement pattern is one statement, not {len(body)}: {pattern!r}")
    return body[0]


@lru_cache(maxsize=512)
def expression(pattern: str) -> ast.expr:
    """The one expression of a pattern."""
    return ast.parse(pattern.strip(), mode="eval").body


@lru_cache(maxsize=512)
def statements(code: str) -> tuple[ast.stmt, ...]:
    """All statements of a piece of code that is to be inserted."""
    return tuple(ast.parse(code).body)


def matches(pattern: object, node: object) -> bool:
    """Whether a node has the pattern's shape."""
    if _is_ellipsis(pattern):
        return isinstance(node, ast.expr)
    if isinstance(pattern, list):
        return isinstance(node, list) and _match_lists(pattern, node)
    if not isinstance(pattern, ast.AST):
        return type(pattern) is type(node) and pattern == node
    if type(pattern) is not type(node):
        return False
    if isinstance(pattern, ast.Call) and isinstance(node, ast.Call) and _is_open_call(pattern):
        return _match_open_call(pattern, node)
    skipped = _IGNORED_FIELDS | ({"orelse"} if _has_open_body(pattern) else set())
    return all(
        matches(getattr(pattern, name, None), getattr(node, name, None))
        for name in pattern._fields
        if name not in skipped
    )


def same(left: ast.AST, right: ast.AST) -> bool:
    """Whether two nodes are the same code, whatever their layout (``...`` is itself here)."""
    return _same(left, right)


def _same(left: object, right: object) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, ast.AST):
        fields = (name for name in left._fields if name not in _IGNORED_FIELDS)
        return all(_same(getattr(left, name, None), getattr(right, name, None)) for name in fields)
    if isinstance(left, list):
        assert isinstance(right, list)
        return len(left) == len(right) and all(map(_same, left, right))
    return left == right


def _is_ellipsis(node: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _is_open(block: object) -> bool:
    return (
        isinstance(block, list) and len(block) == 1 and isinstance(block[0], ast.Expr) and _is_ellipsis(block[0].value)
    )


def _has_open_body(pattern: ast.AST) -> bool:
    return _is_open(getattr(pattern, "body", None)) and not getattr(pattern, "orelse", None)


def _match_lists(pattern: list[object], node: list[object]) -> bool:
    if _is_open(pattern):
        return True
    return len(pattern) == len(node) and all(map(matches, pattern, node))


def _is_open_call(call: ast.Call) -> bool:
    return bool(call.args) and _is_ellipsis(call.args[-1])


def _match_open_call(pattern: ast.Call, node: ast.Call) -> bool:
    fixed = pattern.args[:-1]
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    return (
        matches(pattern.func, node.func)
        and len(node.args) >= len(fixed)
        and all(map(matches, fixed, node.args))
        and all(keyword.arg in given and matches(keyword.value, given[keyword.arg]) for keyword in pattern.keywords)
    )
