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
    """Every import of the package's own modules, wherever it stands in the file, relative ones resolved."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == package:
                    yield Import(alias.name, "", node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module, is_package=is_package)
            if base.partition(".")[0] == package:
                for alias in node.names:
                    yield Import(base, alias.name, node.lineno)


def unresolved(item: Import, tree: Tree, folders: frozenset[str]) -> bool:
    """Whether an import would fail for lack of the module or of the name in it."""
    path = module_path(item.module, tree)
    if path is None:
        folder = item.module.replace(".", "/")  # a namespace package
        return folder not in folders or (
            bool(item.name) and not _is_module(f"{item.module}.{item.name}", tree, folders)
        )
    if not item.name or item.name == "*":
        return False
    names = bound_names(path, tree)
    return not (item.name in names or "__getattr__" in names or _is_module(f"{item.module}.{item.name}", tree, folders))


def module_path(module: str, tree: Tree) -> str | None:
    """The file of a module, or None where it has none."""
    stem = module.replace(".", "/")
    for path in (f"{stem}.py", f"{stem}/__init__.py"):
        if tree.get(path) is not None:
            return path
    return None


def module_name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def bound_names(path: str, tree: Tree, seen: frozenset[str] = frozenset()) -> frozenset[str]:
    """The names that a module binds at its top level, star imports followed."""
    source = tree.source(path)
    if source is None or path in seen:
        return frozenset()
    names: set[str] = set()
    for statement in _top_level(source.tree.body):
        for name in _bound_by(statement):
            names.add(name)
        if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
            base = _absolute(statement, module_name(path), is_package=path.endswith("/__init__.py"))
            other = module_path(base, tree)
            names |= bound_names(other, tree, seen | {path}) if other else {"__getattr__"}
    return frozenset(names)


def _is_module(module: str, tree: Tree, folders: frozenset[str]) -> bool:
    return module_path(module, tree) is not None or module.replace(".", "/") in folders


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
