"""``ensure_import``: one more name from a module that is imported already."""

from __future__ import annotations

import ast
from dataclasses import dataclass

import libcst as cst

from ..model import StepOutcome
from .region import Region
from .result import AlreadySo, Candidate, Found, Location, NotFound
from .source import Source


@dataclass(frozen=True, slots=True)
class EnsureImport:
    """Import ``name`` in the module's one ``from module import …``, in the parenthesised form with a line a name."""

    path: str
    module: str
    name: str

    def locate(self, source: Source) -> Location:
        imports = [
            node
            for node in source.tree.body
            if isinstance(node, ast.ImportFrom) and node.module == self.module and not node.level
        ]
        for node in imports:
            if any(alias.name == self.name and alias.asname is None for alias in node.names):
                return AlreadySo(node.lineno)
        if len(imports) != 1:
            outcome = StepOutcome.ANCHOR_AMBIGUOUS if imports else StepOutcome.ANCHOR_MISSING
            near = tuple(
                Candidate(node.lineno, source.line(node.lineno).decode().strip())
                for node in imports or _near(source, self.module)
            )
            return NotFound(outcome, f"one top-level `from {self.module} import …`", near)
        region = Region.around(source, imports[0])
        statement = region.find(cst.ImportFrom, imports[0])
        return Found(region.replace(statement, _with_name(statement, self.name, source.indent)), imports[0].lineno)

    def symbols(self) -> tuple[str, ...]:
        return ()


def _near(source: Source, module: str) -> list[ast.ImportFrom]:
    last = module.rpartition(".")[2]
    return [
        node
        for node in source.tree.body
        if isinstance(node, ast.ImportFrom) and node.module and node.module.endswith(last)
    ]


def _with_name(statement: cst.ImportFrom, name: str, indent: str) -> cst.ImportFrom:
    assert not isinstance(statement.names, cst.ImportStar)
    aliases = list(statement.names)
    place = next((index for index, alias in enumerate(aliases) if alias.evaluated_name > name), len(aliases))
    aliases.insert(place, cst.ImportAlias(cst.Name(name)))
    inner = _line_break(indent)
    commas = [cst.Comma(whitespace_after=inner)] * (len(aliases) - 1) + [cst.Comma(whitespace_after=_line_break(""))]
    return statement.with_changes(
        lpar=cst.LeftParen(whitespace_after=inner),
        names=[_separated(alias, comma) for alias, comma in zip(aliases, commas, strict=True)],
        rpar=cst.RightParen(),
    )


def _separated(alias: cst.ImportAlias, comma: cst.Comma) -> cst.ImportAlias:
    """The alias with this comma, unless its own holds a comment that must stay."""
    own = alias.comma
    if (
        isinstance(own, cst.Comma)
        and isinstance(own.whitespace_after, cst.ParenthesizedWhitespace)
        and own.whitespace_after.first_line.comment
    ):
        return alias
    return alias.with_changes(comma=comma)


def _line_break(indent: str) -> cst.ParenthesizedWhitespace:
    return cst.ParenthesizedWhitespace(indent=False, last_line=cst.SimpleWhitespace(indent))
