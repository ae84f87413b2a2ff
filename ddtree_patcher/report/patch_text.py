"""A unified diff for people: Python in colours on a terminal that has them, else exactly what `patch` takes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.text import Text

from .diagnostic_text import shown

# The terminal's own sixteen colours and no background, so that dark and light themes both stay readable. A line has
# the colour of its side (added: green, removed: red); only what these name stands out of it.
_LITERAL, _KEYWORD, _DEFINED, _ASIDE = "cyan", "magenta", "bold", "dim"
_SIDES = {"+": "green", "-": "red", " ": ""}
_MARKS = {"+": "bold green", "-": "bold red", " ": ""}
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")

Pieces = list[tuple[str, str]]  # (text, style) in order: one line


@dataclass
class _Hunk:
    """The lines of one hunk, each with its mark in front, and how many of either side are still to come."""

    removed: int
    added: int
    lines: list[str] = field(default_factory=list)

    def wants(self, line: str) -> bool:
        return bool(self.removed or self.added) or line.startswith("\\")

    def take(self, line: str) -> None:
        self.lines.append(line)
        self.removed -= line[:1] in (" ", "-")
        self.added -= line[:1] in (" ", "+")


def draw(text: str, console: Console) -> None:
    """Print a unified diff. Where there is no colour and no terminal, not a byte of it is changed."""
    if console.color_system is None:
        console.file.write(shown(text) if console.is_terminal else text)
        return
    for line in _coloured(text):
        console.print(line, soft_wrap=True)


def _coloured(text: str) -> Iterator[Text]:
    """Every line of a diff, in colour; the body of a hunk is known by the counts in its heading."""
    python, hunk = False, None
    for line in text.split("\n")[:-1]:
        if hunk is not None and hunk.wants(line):
            hunk.take(line)
            continue
        if hunk is not None:
            yield from _hunk(hunk, python)
            hunk = None
        if counts := _HUNK.match(line):
            hunk = _Hunk(int(counts[1] or 1), int(counts[2] or 1))
            yield Text(shown(line), "cyan")
            continue
        if line.startswith("+++ "):
            python = line.rstrip().endswith(".py")
        yield Text(shown(line), "bold")
    if hunk is not None:
        yield from _hunk(hunk, python)


def _hunk(hunk: _Hunk, python: bool) -> Iterator[Text]:
    """Each side is read as a piece of a program of its own; lines that are on both are drawn as in the new one."""
    sides = {side: [line[1:] for line in hunk.lines if line[:1] in (" ", side)] for side in "-+"}
    read = {side: iter(_tokens(lines) if python else _plain(lines)) for side, lines in sides.items()}
    for line in hunk.lines:
        mark = line[:1]
        if mark not in _SIDES:  # \ No newline at end of file
            yield Text(shown(line), "dim")
            continue
        pieces = next(read["-" if mark == "-" else "+"])
        if mark == " ":
            next(read["-"])
        drawn = Text(style=_SIDES[mark]).append(mark, _MARKS[mark])
        for piece, style in pieces:
            drawn.append(shown(piece), style)
        yield drawn


def _plain(lines: Sequence[str]) -> list[Pieces]:
    return [[(line, "")] for line in lines]


def _tokens(lines: Sequence[str]) -> list[Pieces]:
    """Lines of Python, each as pieces with a style."""
    from pygments.lexers.python import PythonLexer  # late: most reports have no diff

    inside = _begins_inside_a_string(lines)
    source = "\n".join([*(['"""'] if inside else []), *lines])
    drawn: list[Pieces] = [[]]
    for kind, value in PythonLexer(stripnl=False, ensurenl=False).get_tokens(source):
        style = _style(str(kind))
        for place, part in enumerate(value.split("\n")):
            if place:
                drawn.append([])
            if part:
                drawn[-1].append((part, style))
    return drawn[1:] if inside else drawn


def _style(kind: str) -> str:
    """The style of a kind of token, as pygments names it: ``Token.Keyword.Constant``."""
    if kind.startswith("Token.Comment"):
        return _ASIDE
    if kind.startswith(("Token.Literal", "Token.Keyword.Constant")):
        return _LITERAL
    if kind.startswith(("Token.Keyword", "Token.Operator.Word")):
        return _KEYWORD
    if kind.startswith(("Token.Name.Function", "Token.Name.Class", "Token.Name.Decorator")):
        return "" if kind.endswith(".Magic") else _DEFINED
    return ""


def _begins_inside_a_string(lines: Sequence[str]) -> bool:
    """Whether a hunk's first triple quote ends a string that began above it.

    A guess, where the quotes do not pair up: one that ends its line, and that neither follows what opens a string nor
    stands alone below the head of a definition.
    """
    quoted = [number for number, line in enumerate(lines) if line.count('"""') % 2]
    if len(quoted) % 2 == 0:
        return False
    before, _, after = lines[quoted[0]].partition('"""')
    if after.strip():
        return False
    before = before.strip() or "".join(lines[: quoted[0]][-1:]).strip()
    return not before.endswith(("=", "(", ",", ":"))
