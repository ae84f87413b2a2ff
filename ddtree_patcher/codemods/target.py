"""What a codemod looks for, as a value: what a conflict shows, and what is looked for in other files."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from . import pattern
from .source import statements_in


@dataclass(frozen=True, slots=True)
class Target:
    """A place in the code: ``statement`` or ``expression`` (patterns) in the definition ``scope`` ("": the module)."""

    scope: str = ""
    statement: str = ""
    expression: str = ""
    within: str = ""  # the compound statement around it; empty: anywhere in the scope
    note: str = ""  # what else must be so, in words
    is_scope: bool = False  # ``scope`` itself is what is looked for: a class, function, member or constant

    def line_in(self, node: ast.AST) -> int:
        """The line of the one statement or expression below a node that is looked for; 0 where there is not one."""
        lines: list[int] = []
        if self.statement:
            wanted = pattern.statement(self.statement)
            lines = [item.lineno for item in statements_in(node) if pattern.matches(wanted, item)]
        elif self.expression:
            shape = pattern.expression(self.expression)
            walked = (item for item in ast.walk(node) if isinstance(item, ast.expr))
            lines = [item.lineno for item in walked if pattern.matches(shape, item)]
        return lines[0] if len(lines) == 1 else 0

    def as_code(self) -> str:
        """The shape as code that can be read, with the rest as comments."""
        scope, _, name = self.scope.rpartition(".") if self.is_scope else (self.scope, "", "")
        lines = [f"# in {scope}"] if scope else []
        if name:
            lines.append(f"{name}  # defined or imported")
        if self.within:
            lines.append(f"# inside: {' '.join(self.within.split())}")
        lines += [text for text in (self.statement, self.expression) if text]
        if self.note:
            lines.append(f"# {self.note}")
        return "\n".join(lines)
