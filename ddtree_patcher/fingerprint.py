"""What a Python module defines, as symbols with hashes that survive reformatting.

``fingerprint`` parses with the standard library only and returns, in source order, one ``Symbol`` for every
function, class, assignment, annotated field and enum member at module level and inside classes (at any depth;
``if``, ``try`` and ``with`` are descended into, functions are not), after one ``<module>`` symbol for the rest.

Two digests a symbol:

* ``hash`` is over the normalised syntax tree: no positions, formatting, comments, docstrings (or any other bare
  string), ``pass``. It is the same on every Python that can parse the file: fields that are empty are left out,
  whatever ``ast.dump`` of that version does with them.
* ``text`` is over the source lines, decorators and the comment block directly above included, with line endings
  normalised. Same ``hash`` and another ``text``: only reformatted.

A class stands for its header: decorators, bases, and statements that are no symbols. A changed method is one
changed symbol. ``<module>`` likewise: imports, and statements that no symbol covers. Imports are no symbols.
"""

from __future__ import annotations

import ast
import hashlib
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from .canonical import canonical
from .errors import SourceError
from .model import Word

MODULE = "<module>"  # the qualname of what belongs to no symbol; no Python name can be it


class SymbolKind(Word):
    """What a symbol is."""

    MODULE = "module"  # imports and statements outside all other symbols: exactly one a file
    CLASS = "class"
    FUNCTION = "function"  # at module level, also async
    METHOD = "method"  # in a class, also async, static, class methods and properties
    CONSTANT = "constant"  # an assignment; annotated ones only at module level
    FIELD = "field"  # an annotated name in a class
    MEMBER = "member"  # an assignment in an Enum or Flag class


@dataclass(frozen=True, slots=True)
class Symbol:
    """One definition. Equality leaves the line out: a definition that only slid down is the same."""

    qualname: str  # dotted; the n-th definition of one name in one scope is ``name#n`` from the second on
    kind: SymbolKind
    signature: (
        str  # ``(a, b: int=1) -> C`` or ``async (…)``; bases of a class; annotation, `` = ...`` when it has a value
    )
    hash: str  # 16 hex digits, see the module's docstring
    text: str  # 16 hex digits, see the module's docstring
    line: int = field(default=0, compare=False)  # 1-based, of the ``def`` or ``class``; 0 when not known

    @property
    def name(self) -> str:
        """The last name, without scope and without ``#n``."""
        return self.qualname.rpartition(".")[2].partition("#")[0]


def fingerprint(data: bytes, *, path: str = "") -> tuple[Symbol, ...]:
    """Every symbol of a module, in source order, ``<module>`` first.

    Raises ``SourceError`` (with ``path``, when given, and the line) for bytes that this Python cannot parse.
    """
    tree = parse(data, path=path)
    lines = data.removeprefix(b"\xef\xbb\xbf").splitlines()
    try:
        body = list(_definitions(tree.body, "", in_enum=False, floor=0, lines=lines, taken=Counter()))
        whole = _Definition(tree, MODULE, SymbolKind.MODULE, "", range(1, len(lines) + 1), body)
        return tuple(_symbols(whole, lines))
    except RecursionError as error:
        raise _unreadable(path, f"nested too deeply ({error})") from error


def parse(data: bytes, *, path: str = "") -> ast.Module:
    """The syntax tree of a module's bytes; whatever makes that impossible is a ``SourceError``."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes and the like are SGLang's business
            return ast.parse(data)
    except SyntaxError as error:
        raise _unreadable(path, error.msg or "invalid syntax", error.lineno or 0) from error
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes; nested too deeply
        raise _unreadable(path, str(error) or type(error).__name__) from error


def _unreadable(path: str, reason: str, line: int = 0) -> SourceError:
    return SourceError(
        f"{path or 'the source'} is not Python that this interpreter can parse: {reason}",
        path=path,
        line=line,
        remedy="restore the file (reinstall the package), or run with the Python version that the package is made for",
    )


# --- finding the definitions -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Definition:
    node: ast.AST
    qualname: str
    kind: SymbolKind
    signature: str
    span: range  # 1-based lines, decorators and the comment block above included
    members: Sequence[_Definition] = ()


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOKED_INTO = (ast.If, ast.Try, getattr(ast, "TryStar", ast.Try), ast.With)  # TryStar: 3.11


def _definitions(
    body: Iterable[ast.stmt], scope: str, *, in_enum: bool, floor: int, lines: list[bytes], taken: Counter[str]
) -> Iterator[_Definition]:
    """The definitions of one scope, through its conditional blocks.

    ``floor`` is the last line before ``body``; ``taken`` counts the names that the scope has so far.
    """
    for statement in body:
        for block in _blocks(statement):
            yield from _definitions(block, scope, in_enum=in_enum, floor=statement.lineno, lines=lines, taken=taken)
        span = _span(statement, floor, lines)
        floor = statement.end_lineno or statement.lineno
        for name in _names(statement):
            taken[name] += 1
            qualname = scope + (name if taken[name] == 1 else f"{name}#{taken[name]}")
            kind = _kind(statement, in_class=bool(scope), in_enum=in_enum)
            members: list[_Definition] = []
            if isinstance(statement, ast.ClassDef):
                members = list(
                    _definitions(
                        statement.body,
                        f"{qualname}.",
                        in_enum=_is_enum(statement),
                        floor=statement.lineno,
                        lines=lines,
                        taken=Counter(),
                    )
                )
            yield _Definition(statement, qualname, kind, signature_text(statement), span, members)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The bodies whose names land in the enclosing scope, in source order."""
    if isinstance(statement, _LOOKED_INTO):
        yield statement.body
        for handler in getattr(statement, "handlers", ()):
            yield handler.body
        yield getattr(statement, "orelse", [])
        yield getattr(statement, "finalbody", [])


def _names(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _target_names(target)
    elif isinstance(statement, ast.AnnAssign):
        yield from _target_names(statement.target)
    elif isinstance(alias := getattr(statement, "name", None), ast.Name):  # ``type X = …``, new in 3.12
        yield alias.id


def _target_names(target: ast.expr) -> Iterator[str]:
    """Plain names, also inside an unpacking; ``a.b = …`` and ``a[i] = …`` define nothing."""
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _target_names(element)
    elif isinstance(target, ast.Starred):
        yield from _target_names(target.value)


def _kind(statement: ast.stmt, *, in_class: bool, in_enum: bool) -> SymbolKind:
    if isinstance(statement, ast.ClassDef):
        return SymbolKind.CLASS
    if isinstance(statement, _FUNCTIONS):
        return SymbolKind.METHOD if in_class else SymbolKind.FUNCTION
    if isinstance(statement, ast.AnnAssign) and in_class:
        return SymbolKind.FIELD
    return SymbolKind.MEMBER if in_enum else SymbolKind.CONSTANT


def _is_enum(node: ast.ClassDef) -> bool:
    """By the name of a base: ``Enum``, ``enum.IntFlag``, a project's own ``BaseEnum``."""
    return any(ast.unparse(base).endswith(("Enum", "Flag")) for base in node.bases)


def _span(statement: ast.stmt, floor: int, lines: list[bytes]) -> range:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
    while first - 1 > floor and lines[first - 2].lstrip().startswith(b"#"):
        first -= 1
    return range(first, (statement.end_lineno or statement.lineno) + 1)


# --- describing them ---------------------------------------------------------------------------------------------


def _symbols(definition: _Definition, lines: list[bytes]) -> Iterator[Symbol]:
    members = definition.members
    yield Symbol(
        qualname=definition.qualname,
        kind=definition.kind,
        signature=definition.signature,
        hash=_digest(canonical(definition.node, without=frozenset(id(member.node) for member in members))),
        text=_digest(b"\n".join(_own_lines(definition, lines))),
        line=getattr(definition.node, "lineno", 1),
    )
    for member in members:
        yield from _symbols(member, lines)


def _own_lines(definition: _Definition, lines: list[bytes]) -> list[bytes]:
    """The lines of a definition; those of a class or module without its members and without blank ones.

    Without blank ones, because a member that comes or goes brings its own, and that is no change of the class.
    """
    if definition.kind not in (SymbolKind.CLASS, SymbolKind.MODULE):
        return [lines[number - 1] for number in definition.span]
    covered = {number for member in definition.members for number in member.span}
    own = (lines[number - 1] for number in definition.span if number not in covered)
    return [line for line in own if line.strip()]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def signature_text(statement: ast.stmt) -> str:
    """What a caller or reader relies on, on one line; empty where there is nothing to say."""
    if isinstance(statement, _FUNCTIONS):
        prefix = "async " if isinstance(statement, ast.AsyncFunctionDef) else ""
        returns = f" -> {ast.unparse(statement.returns)}" if statement.returns else ""
        return f"{prefix}({ast.unparse(statement.args)}){returns}"
    if isinstance(statement, ast.ClassDef):
        bases = [ast.unparse(base) for base in statement.bases]
        bases += [(f"{word.arg}=" if word.arg else "**") + ast.unparse(word.value) for word in statement.keywords]
        return f"({', '.join(bases)})" if bases else ""
    if isinstance(statement, ast.AnnAssign):
        return _annotation(statement.annotation) + (" = ..." if statement.value else "")
    return ""


def _annotation(node: ast.expr) -> str:
    """An annotation without the prose in it: ``A[Optional[str], Arg(help="…")]`` reads ``A[Optional[str], ...]``."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple):
        return ast.unparse(node)
    elements = [_annotation(element) for element in node.slice.elts if not _is_prose(element)]
    if len(elements) < len(node.slice.elts):
        elements.append("...")
    return f"{ast.unparse(node.value)}[{', '.join(elements)}]"


def _is_prose(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return " " in node.value
    return isinstance(node, ast.Call)
