"""``ensure_import``: one more name from a module that is imported already."""

from __future__ import annotations

import ast
from dataclasses import dataclass

import libcst as cst

from ..model import StepOutcome
from .anchors import candidate
from .region import Region
from .result import AlreadySo, Found, Location, NotFound
from .source import Source
from .target import Target


@dataclass(frozen=True, slots=True)
class EnsureImport:
    """Import ``name`` in the module's one ``from module import …``, in the parenthesised form with a line a name."""

    path: str  # the file, relative to the folder that holds the package
    module: str  # where the name is imported from, absolute, as it is written there
    name: str  # the name to import, without `as`

    def locate(self, source: Source) -> Location:
        imports = [
            node
            for node in source.tree.body
            if isinstance(node, ast.ImportFrom) and node.module == self.module and not node.level and not _is_star(node)
        ]
        for node in imports:
            if any(alias.name == self.name and alias.asname is None for alias in node.names):
                return AlreadySo(node.lineno)
        if len(imports) != 1:
            outcome = StepOutcome.ANCHOR_AMBIGUOUS if imports else StepOutcome.ANCHOR_MISSING
            near = tuple(candidate(source, node) for node in imports or _near(source, self.module))
            return NotFound(outcome, f"one top-level `from {self.module} import …`", near)
        region = Region.around(source, imports[0])
        statement = region.find(cst.ImportFrom, imports[0])
        return Found(region.replace(statement, _with_name(statement, self.name, source.indent)), imports[0].lineno)

    def symbols(self) -> tuple[str, ...]:
        return ()

    def target(self) -> Target:
        return Target(statement=f"from {self.module} import ...")


def _is_star(node: ast.ImportFrom) -> bool:
    return node.names[0].name == "*"


def _near(source: Source, module: str) -> list[ast.ImportFrom | ast.Import]:
    """Imports from a module of that last name, and imports of such a module."""
    last = module.rpartition(".")[2]

    def names(node: ast.stmt) -> list[str]:
        if isinstance(node, ast.ImportFrom):
            return [node.module or "", *(alias.name for alias in node.names)]
        return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []

    found = [node for node in source.tree.body if isinstance(node, ast.ImportFrom | ast.Import)]
    return [node for node in found if any(name.rpartition(".")[2].endswith(last) for name in names(node))]


def _with_name(statement: cst.ImportFrom, name: str, indent: str) -> cst.ImportFrom:
    assert not isinstance(statement.names, cst.ImportStar)
    aliases = list(statement.names)
    place = next((index for index, alias in enumerate(aliases) if alias.evaluated_name > name), len(aliases))
    gaps = _gaps(statement, aliases)
    before, after = _split(gaps[place])
    gaps[place : place + 1] = [before, after]
    aliases.insert(place, cst.ImportAlias(cst.Name(name)))
    breaks = [_line_break(gap, indent) for gap in gaps[:-1]] + [_line_break(gaps[-1], "")]
    return statement.with_changes(
        lpar=cst.LeftParen(whitespace_after=breaks[0]),
        names=[
            alias.with_changes(comma=cst.Comma(whitespace_after=gap))
            for alias, gap in zip(aliases, breaks[1:], strict=True)
        ],
        rpar=cst.RightParen(),
    )


def _gaps(statement: cst.ImportFrom, aliases: list[cst.ImportAlias]) -> list[cst.ParenthesizedWhitespace]:
    """What stands before each name, and behind the last one: line breaks with the comments in them."""
    commas = [alias.comma.whitespace_after if isinstance(alias.comma, cst.Comma) else None for alias in aliases]
    first = statement.lpar.whitespace_after if statement.lpar else None
    last = statement.rpar.whitespace_before if statement.rpar else None
    behind = commas[-1] if isinstance(commas[-1], cst.ParenthesizedWhitespace) else last
    return [
        item if isinstance(item, cst.ParenthesizedWhitespace) else cst.ParenthesizedWhitespace()
        for item in (first, *commas[:-1], behind)
    ]


def _split(gap: cst.ParenthesizedWhitespace) -> tuple[cst.ParenthesizedWhitespace, cst.ParenthesizedWhitespace]:
    """Room for a name: the comment behind the name above stays there, comment lines stay with what is below."""
    return gap.with_changes(empty_lines=[]), cst.ParenthesizedWhitespace(empty_lines=gap.empty_lines)


def _line_break(gap: cst.ParenthesizedWhitespace, indent: str) -> cst.ParenthesizedWhitespace:
    first = gap.first_line if gap.first_line.comment else cst.TrailingWhitespace()
    return gap.with_changes(first_line=first, indent=False, last_line=cst.SimpleWhitespace(indent))
