"""A syntax tree as bytes that say only what the code means.

``ast.dump`` would do, were it the same from one Python to the next: fields come (``type_params`` in 3.12), defaults
are printed or not (3.13), and strings are escaped by that version's Unicode tables. Here an empty field is never
written, and constants are written in ASCII.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

_NOTHING: frozenset[int] = frozenset()
_UNSAID = frozenset({"ctx", "kind", "type_comment", "type_ignores"})  # context, u-prefix, comments: no meaning


def canonical(node: ast.AST, *, without: frozenset[int] = _NOTHING) -> bytes:
    """The normalised form of a tree: no positions, docstrings or other bare strings, no ``pass``.

    ``without`` holds the ``id()`` of statements that are left out wherever they stand.
    """
    parts: list[str] = []
    _write(node, parts, without)
    return "".join(parts).encode("ascii", "backslashreplace")


def _write(node: ast.AST, parts: list[str], without: frozenset[int]) -> None:
    parts.append(type(node).__name__)
    parts.append("(")
    for name in node._fields:
        value = getattr(node, name, None)
        if value is None or name in _UNSAID:
            continue
        if isinstance(value, list):
            if name == "values" and isinstance(node, ast.JoinedStr):
                value = _joined(value)
            _write_list(name, value, parts, without)
            continue
        if name == "format_spec" and not getattr(value, "values", None):
            continue  # ``{x:}``: some versions keep an empty specification
        parts.append(f"{name}=")
        if isinstance(value, ast.AST):
            _write(value, parts, without)
        else:
            parts.append(_constant(value))
        parts.append(",")
    parts.append(")")


def _write_list(name: str, items: Iterable[object], parts: list[str], without: frozenset[int]) -> None:
    kept = [item for item in items if not (id(item) in without or _does_nothing(item))]
    if not kept:
        return
    parts.append(f"{name}=[")
    for item in kept:
        if isinstance(item, ast.AST):
            _write(item, parts, without)
        else:
            parts.append("-" if item is None else _constant(item))  # None: ``**x`` in a dict, no default
        parts.append(",")
    parts.append("],")


def _does_nothing(item: object) -> bool:
    """``pass`` and strings that stand alone: docstrings, and the documentation of a field below it."""
    if isinstance(item, ast.Expr):
        return isinstance(item.value, ast.Constant) and isinstance(item.value.value, str)
    return isinstance(item, ast.Pass)


def _constant(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return hex(value)  # decimal has a length limit
    return ascii(value)


def _joined(values: list[ast.expr]) -> list[ast.expr]:
    """The parts of an f-string with neighbouring literals joined and empty ones gone, as only some versions do."""
    result: list[ast.expr] = []
    for value in values:
        if not (isinstance(value, ast.Constant) and isinstance(value.value, str)):
            result.append(value)
            continue
        before = result[-1] if result else None
        if isinstance(before, ast.Constant):
            result[-1] = ast.Constant(str(before.value) + value.value)
        elif value.value:
            result.append(value)
    return result
