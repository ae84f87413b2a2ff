"""Tables that stay readable: on 60 columns a row's text goes below it, and a path is folded at its slashes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

_GOOD = {"applied", "already", "upstreamed", "not_needed", "passed", "pristine", "patched", "clean", "ok"}
_WAITING = {"pending", "not_run", "outdated", "changes", "warning", "wiped", "busy"}
_READABLE = 40  # columns that running text needs at least, to stand beside other columns
_GAP = 2  # columns between two
_INDENT = 4  # columns before text that stands below its row


def styled(word: str) -> Text:
    """A status word in the colour of what it means."""
    style = "green" if word in _GOOD else "yellow" if word in _WAITING else "bold red"
    return Text(word, style=style)


def table(*columns: str | Text) -> Table:
    """A table without lines, as all of them are drawn."""
    made = Table(box=None, pad_edge=False, header_style="dim", padding=(0, _GAP, 0, 0))
    for name in columns:
        made.add_column(name if isinstance(name, Text) else Text(name), overflow="fold")
    return made


def listing(console: Console, columns: Sequence[str], rows: Sequence[Sequence[Text]]) -> None:
    """Rows of which the last column is running text: beside the others where there is room for it, else below them."""
    *widths, longest = (
        max(map(cell_len, column)) for column in zip(columns, *(map(str, row) for row in rows), strict=True)
    )
    first = len(widths)
    if console.width - sum(widths) - _GAP * first >= min(_READABLE, longest):
        drawn = table(*columns)
        for row in rows:
            drawn.add_row(*row)
        console.print(drawn)
        return
    console.print(_aligned([Text(name, "dim") for name in columns[:first]], widths))
    for row in rows:
        console.print(_aligned(row[:first], widths))
        if row[first]:
            console.print(Padding(row[first], (0, 0, 0, min(_INDENT, console.width // 4)), expand=False), style="dim")


def _aligned(cells: Sequence[Text], widths: Sequence[int]) -> Text:
    line = Text(overflow="fold")
    for cell, width in zip(cells, widths, strict=True):
        line.append_text(cell).append(" " * (width - cell.cell_len + _GAP))
    line.rstrip()
    return line


def say(console: Console, line: Text, indent: int = 0) -> None:
    """A message: its words whole on a terminal, below each other; itself one whole line where the output is kept."""
    if console.is_terminal:
        indent = min(indent, console.width // 4)
        console.print(Padding(line, (0, 0, 0, indent), expand=False), overflow="fold", highlight=False)
    else:
        console.print(Text(" " * indent).append_text(line), soft_wrap=True, highlight=False)


def folded(path: str, width: int) -> str:
    """A path in lines of at most ``width``, broken behind slashes; a name that is longer is left to be folded."""
    lines = [""]
    for part in _parts(path):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _parts(path: str) -> Iterable[str]:
    *folders, name = path.split("/")
    return [*(f"{folder}/" for folder in folders), name]
