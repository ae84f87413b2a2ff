"""Which names a module binds at its top level, and where the modules of a package lie: import resolution by reading."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ..codemods.source import Definition, blocks_of
from ..tree import Tree


@dataclass(frozen=True, slots=True)
class Import:
    """One name that a file imports from the package; ``name`` is empty for ``import module``."""

    module: str
    name: str
    line: int


def imports_of(tree: ast.Module, package: str, module: str, *, is_package: bool) -> Iterator[Import]:
    """Every import of the package's own modules, wherever it stands in the file, relative ones resolved.

    Not those that the code expects to fail: the body of a ``try`` that handles ``ImportError``.
    """
    for node in _unguarded(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == package:
                    yield Import(alias.name, "", node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module, is_package=is_package)
            if base.partition(".")[0] == package:
                for alias in node.names:
                    yield Import(base, alias.name, node.lineno)


def _unguarded(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    guarded = node.body if isinstance(node, ast.Try) and any(map(_expects_no_module, node.handlers)) else []
    for child in ast.iter_child_nodes(node):
        if child not in guarded:
            yield from _unguarded(child)


def _expects_no_module(handler: ast.ExceptHandler) -> bool:
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(item, ast.Name) and item.id in ("ImportError", "ModuleNotFoundError") for item in caught)


class Resolver:
    """Finds modules and names in a tree; each module is looked through once. ``folders`` may be namespace packages."""

    def __init__(self, tree: Tree, folders: frozenset[str]) -> None:
        self._tree = tree
        self._folders = folders
        self._names: dict[str, frozenset[str]] = {}

    def unresolved(self, item: Import) -> bool:
        """Whether an import would fail for lack of the module or of the name in it."""
        path = self.path_of(item.module)
        inner = bool(item.name) and self._is_module(f"{item.module}.{item.name}")
        if path is None:
            return not (self._is_module(item.module) and (inner or not item.name))
        if not item.name or item.name == "*" or inner:
            return False
        names = self.names_in(path)
        return not (item.name in names or "__getattr__" in names)

    def path_of(self, module: str) -> str | None:
        """The file of a module, or None where it has none."""
        stem = module.replace(".", "/")
        for path in (f"{stem}.py", f"{stem}/__init__.py"):
            if self._tree.get(path) is not None:
                return path
        return None

    def names_in(self, path: str) -> frozenset[str]:
        """The names that a module binds at its top level, star imports followed."""
        if path not in self._names:
            self._names[path] = frozenset()  # ends a circle of star imports
            self._names[path] = frozenset(self._bindings(path))
        return self._names[path]

    def _bindings(self, path: str) -> Iterator[str]:
        source = self._tree.source(path)
        for statement in _top_level(source.tree.body) if source else ():
            yield from _bound_by(statement)
            if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
                base = _absolute(statement, module_name(path), is_package=path.endswith("/__init__.py"))
                other = self.path_of(base)
                yield from self.names_in(other) if other else ("__getattr__",)

    def _is_module(self, module: str) -> bool:
        return self.path_of(module) is not None or module.replace(".", "/") in self._folders


def module_name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _absolute(node: ast.ImportFrom, module: str, *, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    base = parts[: len(parts) - node.level + (1 if is_package else 0)]
    return ".".join([*base, *([node.module] if node.module else [])])


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if not isinstance(statement, Definition):
            for block in blocks_of(statement):
                yield from _top_level(block)


def _bound_by(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, Definition):
        yield statement.name
        return
    if isinstance(statement, ast.Import | ast.ImportFrom):
        for alias in statement.names:
            yield alias.asname or alias.name.partition(".")[0]
        return
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.expr | ast.withitem):
            for node in ast.walk(child):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id
