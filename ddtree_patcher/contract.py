"""Contracts: what the inserted code needs of upstream code, checked without importing any of it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from .codemods import Candidate, NotFound, Target
from .codemods.anchors import find_scope
from .patchset import Contract
from .shape import Defines
from .tree import Tree


@dataclass(frozen=True, slots=True)
class Breach:
    """A contract that does not hold. ``line`` is 0 when there is no definition to point at."""

    contract: Contract
    reason: str
    line: int = 0
    near: tuple[Candidate, ...] = ()  # the definitions that come near

    @property
    def expected(self) -> str:
        """The definition that the contract names, as code."""
        if not self.contract.parameters:
            return Target(self.contract.name, is_scope=True).as_code()
        scope, _, name = self.contract.name.rpartition(".")
        return Target(scope, f"def {name}({', '.join((*self.contract.parameters, '...'))}): ...").as_code()


def breaches(contracts: Sequence[Contract], tree: Tree) -> list[Breach]:
    """The contracts that do not hold in a tree."""
    return [breach for item in contracts for breach in _check(item, tree)]


def _check(contract: Contract, tree: Tree) -> list[Breach]:
    source = tree.source(contract.path)
    if source is None:
        return [Breach(contract, f"the contract names {contract.path}, which does not exist")]
    found = source.definitions.get(contract.name, [])
    if not found and (contract.parameters or not Defines(contract.path, contract.name).holds(tree)):
        reason = f"the contract needs {contract.name} in {contract.path}, which does not define it"
        missing = find_scope(source, contract.name)
        near = missing.candidates if isinstance(missing, NotFound) else ()
        return [Breach(contract, reason, near[0].line if near else 0, near)]
    functions = [node for node in found[-1:] if not isinstance(node, ast.ClassDef)]
    return [breach for node in functions for breach in _parameters(contract, node)]


def _parameters(contract: Contract, node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[Breach]:
    given = node.args
    names = {item.arg for item in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
    if contract.called and (reason := _cannot_be_called(contract, node)):
        return [Breach(contract, reason, node.lineno, (Candidate(node.lineno, ""),))]
    lacking = [name for name in contract.parameters if name not in names]
    if not lacking or given.kwarg is not None:
        return []
    reason = f"{contract.name} in {contract.path} no longer takes {', '.join(lacking)}"
    return [Breach(contract, reason, node.lineno, (Candidate(node.lineno, "", 1.0),))]


def _cannot_be_called(contract: Contract, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Why a call with just these parameters does not mean what it meant; empty where it does."""
    given, what = node.args, f"{contract.name} in {contract.path}"
    if any(ast.unparse(item).endswith("property") for item in node.decorator_list):
        return f"{what} is a property now, and the inserted code calls it"
    positional = [*given.posonlyargs, *given.args]
    needed = positional[: len(positional) - len(given.defaults)]
    needed += [item for item, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is None]
    if more := [item.arg for item in needed if item.arg not in contract.parameters]:
        return f"{what} needs {', '.join(more)} now, which the inserted code does not pass"
    places = [item.arg for item in positional]
    listed = [name for name in contract.parameters if name in places]
    if listed != sorted(listed, key=places.index):
        return f"{what} takes {', '.join(listed)} in another order"
    return ""
