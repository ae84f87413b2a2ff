"""What a codemod looks for, as a value: what a conflict shows, and what is looked for in other files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """A place in the code: ``statement`` or ``expression`` (patterns) in the definition ``scope`` ("": the module)."""

    scope: str = ""
    statement: str = ""
    expression: str = ""
    within: str = ""  # the compound statement around it; empty: anywhere in the scope
    conditions: int = 0  # that the statement stands under
    note: str = ""  # what else must be so, in words
    is_scope: bool = False  # ``scope`` itself is what is looked for: a class, function, member or constant

    def as_code(self) -> str:
        """The shape as code that can be read, with the rest as comments."""
        scope, _, name = self.scope.rpartition(".") if self.is_scope else (self.scope, "", "")
        lines = [f"# in {scope}"] if scope else []
        if name:
            lines.append(f"{name}  # defined or imported")
        if self.within:
            lines.append(f"# inside: {' '.join(self.within.split())}")
        if self.conditions:
            lines.append(f"# under {self.conditions} condition{'s' * (self.conditions > 1)}")
        lines += [text for text in (self.statement, self.expression) if text]
        if self.note:
            lines.append(f"# {self.note}")
        return "\n".join(lines)
