"""Sentinels: the names by which upstream code speaks of what a patchset extends, and a verdict on every such place.

A patchset that adds a name beside another one has looked at every place that asks for that other one. On a release that
nobody has looked at there may be a new one; it compiles, every anchor is found, and what was added falls silently into
the wrong branch. So each place needs a verdict, and a place without one is an alarm.

A place is known by its file, its definition and its *use*: the smallest comparison, call or statement that holds the
name. Lines slide, conditions grow; what is asked of the name is what a verdict was passed on.
"""

from __future__ import annotations

import ast
import copy
import re
import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from .codemods import pattern
from .codemods.source import Definition
from .digest import Read
from .errors import PatchsetError, SourceError
from .model import Word
from .tree import Tree


class Ruling(Word):
    """What was decided about one place."""

    EXTENDED = "extended"  # a step changes it, so that it serves what is added too
    LEFT = "left"  # as it is it serves what is added, or does not concern it
    REFUSED = "refused"  # as it is it keeps what is added out, and so it shall


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided about one place, on every release that has it."""

    path: str
    scope: str  # a dotted definition; "" is the module
    use: str  # the smallest comparison, call or statement around the name, with the wildcards of an anchor
    ruling: Ruling
    why: str
    places: int = 1  # how often a release has it in that scope, at most

    def covers(self, site: Site) -> bool:
        if (self.path, self.scope) != (site.path, site.scope):
            return False
        try:
            return pattern.matches(pattern.statement(self.use), pattern.statement(site.use))
        except (SyntaxError, ValueError):  # a use that is no statement by itself, or a file that is not Python
            return False


@dataclass(frozen=True)
class Sentinels:
    """Which names are watched, where they are not, and every verdict."""

    strings: tuple[str, ...] = ()  # string literals with exactly this value
    attributes: tuple[str, ...] = ()  # names behind a dot, as members of an enum are used
    verdicts: tuple[Verdict, ...] = ()
    own: tuple[str, ...] = ()  # what the patchset adds, as either: pristine code that has it was patched by others
    elsewhere: tuple[str, ...] = ()  # beginnings of paths that are not looked at

    def __post_init__(self) -> None:
        for verdict in self.verdicts:
            try:
                pattern.statement(verdict.use)
            except (SyntaxError, ValueError) as error:
                raise PatchsetError(
                    f"the verdict on {verdict.scope or 'the module'} in {verdict.path} is on no one statement: {error}",
                    remedy=f"Write the comparison, call or statement as Python; this is {verdict.use!r}.",
                ) from error

    @cached_property
    def _names(self) -> re.Pattern[bytes]:
        """Where a name may stand: between quotes or behind a dot. Most files have no match and are not parsed."""
        strings = b"|".join(re.escape(name.encode()) for name in {*self.strings, *self.own})
        attributes = b"|".join(re.escape(name.encode()) for name in {*self.attributes, *self.own})
        return re.compile(rb"[\"'](?:%s)[\"']|\.\s*(?:%s)\b" % (strings or b"(?!)", attributes or b"(?!)"))

    @cached_property
    def _stems(self) -> tuple[bytes, ...]:
        """What some name begins with: to look for these few is many times as fast as the pattern."""
        names = sorted({name.encode() for name in (*self.strings, *self.attributes, *self.own)})
        return tuple(name for name in names if not any(name != stem and name.startswith(stem) for stem in names))

    def lines_in(self, data: bytes) -> list[int]:
        """The lines where a name may stand, 1-based."""
        if not any(stem in data for stem in self._stems):
            return []
        return sorted({len(data[: match.end()].splitlines()) for match in self._names.finditer(data)})

    def name_of(self, node: ast.AST) -> str:
        """The watched name that a node is; empty when it is none."""
        if isinstance(node, ast.Constant) and node.value in (*self.strings, *self.own):
            return str(node.value)
        if isinstance(node, ast.Attribute) and node.attr in (*self.attributes, *self.own):
            return node.attr
        return ""


@dataclass(frozen=True, slots=True)
class Site:
    """One place where a watched name is used."""

    path: str
    line: int  # 1-based
    scope: str  # a dotted definition; "" is the module
    name: str  # empty where the file cannot be parsed
    use: str  # its code on one line; likewise


@dataclass(frozen=True, slots=True)
class Alarm:
    """A place on which no verdict was passed, and what is known about it."""

    site: Site
    reason: str  # empty when nothing comes near


def survey(sentinels: Sentinels, read: Read, paths: Iterable[str]) -> list[Site]:
    """Every place that uses a watched name, by path and line. A file without one costs a search of its bytes."""
    found: list[Site] = []
    for path in sorted(paths):
        if not path.endswith(".py") or path.startswith(sentinels.elsewhere):
            continue
        data = read(path)
        if lines := sentinels.lines_in(data):
            found += _sites(sentinels, data, path, lines)
    return found


def foreign(sentinels: Sentinels, sites: Iterable[Site]) -> list[Site]:
    """The places in pristine code that use a name which only the patchset should have brought."""
    return [site for site in sites if site.name in sentinels.own]


def alarms(sentinels: Sentinels, sites: Iterable[Site]) -> list[Alarm]:
    """The places without a verdict, and those that one verdict does not stand for all of."""
    sites = list(sites)
    # Somebody has extended these already: they are no riddle, and `foreign` tells of them.
    extended = {(site.path, site.scope, site.use) for site in sites if site.name in sentinels.own}
    covered: defaultdict[Verdict, list[Site]] = defaultdict(list)
    found: list[Alarm] = []
    for site in sites:
        if (site.path, site.scope, site.use) in extended:
            continue
        verdict = next((item for item in sentinels.verdicts if item.covers(site)), None)
        if verdict is None:
            found.append(Alarm(site, _nearest(sentinels.verdicts, site)))
        else:
            covered[verdict].append(site)
    for verdict, places in covered.items():
        if len(places) > verdict.places:
            lines = ", ".join(str(site.line) for site in places)
            reason = f"The verdict on it stands for {verdict.places}, and there are {len(places)}: lines {lines}."
            found += [Alarm(site, reason) for site in places[verdict.places :]]
    return sorted(found, key=lambda item: (item.site.path, item.site.line))


def _nearest(verdicts: Iterable[Verdict], site: Site) -> str:
    if not site.name:
        return "This Python cannot parse the file, so what it does with the name is not known."
    same = [f"`{item.use}` ({item.ruling})" for item in verdicts if (item.path, item.scope) == (site.path, site.scope)]
    return f"Verdicts in the same definition: {', '.join(same)}." if same else ""


# --- looking into one file ----------------------------------------------------------------------------------------


def _sites(sentinels: Sentinels, data: bytes, path: str, lines: Sequence[int]) -> list[Site]:
    try:
        source = Tree(_nothing, {path: data}).source(path)
    except SourceError as error:
        return [Site(path, error.line or lines[0], "", "", "")]
    assert source is not None
    found = _uses(sentinels, source.tree, "", source.tree, lines)
    return sorted(
        (Site(path, node.lineno, scope, name, _on_one_line(use)) for name, node, scope, use in found),
        key=lambda site: site.line,
    )


def _nothing(path: str) -> bytes:
    raise FileNotFoundError(path)


_Use = ast.Compare | ast.Call | ast.stmt | ast.pattern


def _uses(
    sentinels: Sentinels, node: ast.AST, scope: str, use: ast.AST, lines: Sequence[int]
) -> Iterator[tuple[str, ast.expr, str, ast.AST]]:
    """Each watched name below a node: the name, its node, the definition and the use that hold it."""
    for child in ast.iter_child_nodes(node):
        if not _on_a_line(child, lines) or _says_nothing(child):
            continue
        inside = use
        within = scope
        if isinstance(child, _Use):
            inside = child
        if isinstance(child, Definition):
            within = f"{scope}.{child.name}" if scope else child.name
        if (name := sentinels.name_of(child)) and isinstance(child, ast.expr):
            yield name, child, within, inside
        # Python before 3.12 gives nodes inside an f-string other lines than their own.
        yield from _uses(sentinels, child, within, inside, _ALL if isinstance(child, ast.JoinedStr) else lines)


_ALL = range(sys.maxsize)


def _on_a_line(node: ast.AST, lines: Sequence[int]) -> bool:
    """Whether one of the lines is the node's; nodes without lines (``arguments``) may have any."""
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", None)
    if last is None:
        return True
    decorators = [item.lineno for item in getattr(node, "decorator_list", ())]
    index = bisect_left(lines, min([first, *decorators]))
    return index < len(lines) and lines[index] <= last


def _says_nothing(node: ast.AST) -> bool:
    """A docstring, or another string that stands alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _on_one_line(use: ast.AST) -> str:
    """The code of a use; of a compound statement its head, with ``...`` for its body."""
    if not isinstance(use, ast.stmt) or not hasattr(use, "body"):
        return ast.unparse(use)
    head = copy.copy(use)
    for name in ("orelse", "finalbody", "handlers", "decorator_list"):
        setattr(head, name, [])
    head.body = [ast.Expr(ast.Constant(...))]
    return " ".join(ast.unparse(ast.fix_missing_locations(head)).split())
