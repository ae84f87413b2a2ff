"""What differs between two signatures of one symbol, in words: ``parameter topk added, default 8``.

A signature is the text that :func:`ddtree_patcher.fingerprint.signature_text` gives.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from .fingerprint import SymbolKind

_CALLED = (SymbolKind.FUNCTION, SymbolKind.METHOD)
_VALUE = " = ..."  # at the end of an annotation: it has one


def differences(kind: SymbolKind, before: str, after: str) -> tuple[str, ...]:
    """Each difference, in the order in which the signature is read; nothing for equal ones.

    What cannot be taken apart (other kinds of symbols, text that is no signature) is one difference as a whole.
    """
    if before == after:
        return ()
    if kind in _CALLED:
        found = _of_functions(before, after)
    elif kind is SymbolKind.CLASS:
        found = list(_of_bases(before, after))
    else:
        found = list(_of_annotations(before, after))
    return tuple(found) or (f"{before or 'nothing'} → {after or 'nothing'}",)


# --- functions ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str  # with its stars
    passed: str  # how a caller may pass it
    annotation: str  # empty: none
    default: str  # empty: required


def _of_functions(before: str, after: str) -> list[str]:
    old, new = _parsed(before), _parsed(after)
    if old is None or new is None:
        return []
    was = {item.name: item for item in _parameters(old.args)}
    now = {item.name: item for item in _parameters(new.args)}
    found = [f"parameter {name} is gone" for name in was if name not in now]
    found += [_added(item) for name, item in now.items() if name not in was]
    for name in now:
        if name in was:
            found += _of_parameter(was[name], now[name])
    if [name for name in was if name in now] != [name for name in now if name in was]:
        found.append("the parameters have another order")
    returned = [ast.unparse(node.returns) if node.returns else "" for node in (old, new)]
    if returned[0] != returned[1]:
        found.append(f"returns {_or_nothing(returned[0])} → {_or_nothing(returned[1])}")
    if type(old) is not type(new):
        found.append("is async now" if isinstance(new, ast.AsyncFunctionDef) else "is no longer async")
    return found


def _parsed(signature: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    prefix, rest = ("async ", signature[6:]) if signature.startswith("async ") else ("", signature)
    try:
        (node,) = ast.parse(f"{prefix}def f{rest}: ...").body
    except (SyntaxError, ValueError):
        return None
    return node if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else None


def _parameters(given: ast.arguments) -> Iterator[_Parameter]:
    positional = [(item, "by position only") for item in given.posonlyargs] + [(item, "") for item in given.args]
    missing = len(positional) - len(given.defaults)
    for number, (item, passed) in enumerate(positional):
        yield _parameter(item, passed, given.defaults[number - missing] if number >= missing else None)
    if given.vararg:
        yield _parameter(given.vararg, "", None, "*")
    for item, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield _parameter(item, "by keyword only", default)
    if given.kwarg:
        yield _parameter(given.kwarg, "", None, "**")


def _parameter(item: ast.arg, passed: str, default: ast.expr | None, stars: str = "") -> _Parameter:
    annotation = ast.unparse(item.annotation) if item.annotation else ""
    return _Parameter(stars + item.arg, passed, annotation, ast.unparse(default) if default else "")


def _added(item: _Parameter) -> str:
    if item.name.startswith("*"):
        return f"parameter {item.name} added"
    ends = [f"default {item.default}" if item.default else "required", *([item.passed] if item.passed else [])]
    return f"parameter {item.name} added, {', '.join(ends)}"


def _of_parameter(was: _Parameter, now: _Parameter) -> Iterator[str]:
    if was.default != now.default:
        if not was.default:
            yield f"{now.name} has a default now: {now.default}"
        elif not now.default:
            yield f"{now.name} is required now (its default was {was.default})"
        else:
            yield f"default of {now.name}: {was.default} → {now.default}"
    if was.annotation != now.annotation:
        yield f"type of {now.name}: {_or_nothing(was.annotation)} → {_or_nothing(now.annotation)}"
    if was.passed != now.passed:
        yield f"{now.name} is passed {now.passed or 'by position or keyword'} now"


def _or_nothing(text: str) -> str:
    return text or "(nothing said)"


# --- classes and fields ------------------------------------------------------------------------------------------


def _of_bases(before: str, after: str) -> Iterator[str]:
    was, now = _bases(before), _bases(after)
    yield from (f"base {name} is gone" for name in was if name not in now)
    yield from (f"base {name} added" for name in now if name not in was)


def _bases(signature: str) -> list[str]:
    try:
        node = ast.parse(f"class C{signature}: ...").body[0]
    except (SyntaxError, ValueError):
        return []
    if not isinstance(node, ast.ClassDef):
        return []
    words = [(f"{word.arg}=" if word.arg else "**") + ast.unparse(word.value) for word in node.keywords]
    return [*map(ast.unparse, node.bases), *words]


def _of_annotations(before: str, after: str) -> Iterator[str]:
    was, now = before.removesuffix(_VALUE), after.removesuffix(_VALUE)
    if was != now:
        yield f"type: {_or_nothing(was)} → {_or_nothing(now)}"
    if before.endswith(_VALUE) != after.endswith(_VALUE):
        yield "has a default now" if after.endswith(_VALUE) else "has no default any more"
