"""What ``diff`` has to say, as release notes: what changed of the code that we touch, and what that means a step."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.text import Text

from ..model import Report, StepProspect
from .diagnostic_text import shown as printable

Row = Mapping[str, Any]

_MODULE = "<module>"  # as snapshots name what belongs to no definition
_LONG = 160  # characters of a signature that is shown without -v; its differences are said in words anyway
_SHOWN = 4  # names of changed symbols behind a step, without -v
_STYLES = {
    StepProspect.STILL_FITS: "green",
    StepProspect.UPSTREAMED: "green",
    StepProspect.NOT_NEEDED: "green",
    StepProspect.NEEDS_WORK: "bold red",
}
_FILES = {"file_added": "new file", "file_removed": "the file is gone"}
_WORDS = {"changed": "changed", "reformatted": "reformatted", "moved": "moved", "added": "new", "removed": "gone"}


def draw(report: Report, console: Console, *, verbose: bool) -> None:
    """The headline, the symbols by file, one line for all others, and the steps."""
    snapshot: Row = report.extra["snapshot"]  # type: ignore[assignment]
    changes: Sequence[Row] = report.extra["changes"]  # type: ignore[assignment]
    steps: Sequence[Row] = report.extra["meaning"]  # type: ignore[assignment]
    _headline(report, snapshot, console)
    ours = [row for row in changes if row["touched_by"]]
    others = [row for row in changes if not row["touched_by"]]
    _symbols("Changed in the code that we touch", ours, changes, console, verbose=verbose)
    if not any(row["change"] not in _FILES for row in ours):
        console.print()
        console.print(Text("Nothing that we touch differs.", "green"))
    _others(others, console, verbose=verbose)
    if verbose:
        _symbols("Other changes of watched files", others, changes, console, verbose=True)
    _steps(steps, str(snapshot["version"]), console, verbose=verbose)


def _headline(report: Report, snapshot: Row, console: Console) -> None:
    before, after = str(snapshot["version"]), str(report.installation.get("version") or "(version unknown)")
    console.print()
    if before == after:
        line = Text.assemble((f"{after}, beside the snapshot of {before}", "bold"))
    else:
        line = Text.assemble((f"From {before} to {after}", "bold"), _direction(before, after))
    if snapshot["chosen"] == "nearest":
        line.append(" (no snapshot has this version; the nearest one by content)")
    console.print(_hanging("", line, 0, console))
    files, same = int(snapshot["files"]), int(snapshot["identical_files"])
    share = math.floor(snapshot["agreement"] * 1000) / 10  # 100 % is said where all are
    symbols = f"{share:.1f}% of the snapshot's symbols are the same"
    line = Text(f"{symbols}; {same} of {files} watched files {'is' if same == 1 else 'are'} the same byte for byte.")
    console.print(_hanging("", line, 0, console))


def _direction(before: str, after: str) -> str:
    from packaging.version import InvalidVersion, Version

    try:
        return ", an earlier release" if Version(after) < Version(before) else ""
    except InvalidVersion:
        return ""


# --- symbols -----------------------------------------------------------------------------------------------------


def _symbols(title: str, rows: Sequence[Row], all_rows: Sequence[Row], console: Console, *, verbose: bool) -> None:
    """By file, in the order of paths; the rows of a file as a whole are said beside its name."""
    if not any(row["change"] not in _FILES or row["touched_by"] for row in rows):
        return
    lines = {f"{row['path']}:{row['symbol']}": row["line"] for row in all_rows if row["change"] == "added"}
    console.print()
    console.print(Text(title, "bold"))
    for path, group in groupby(rows, key=lambda row: row["path"]):
        mine = list(group)
        whole = [_FILES[row["change"]] for row in mine if row["change"] in _FILES]
        console.print()
        console.print(Text.assemble((path, "cyan"), f" ({whole[0]})" if whole else ""))
        for row in mine:
            if row["change"] not in _FILES:
                _symbol(row, lines, console, verbose=verbose)


def _symbol(row: Row, lines: Mapping[str, int], console: Console, *, verbose: bool) -> None:
    name = "(module)" if row["symbol"] == _MODULE else row["symbol"]
    line = f":{row['line']}" if row["line"] > 1 and not row["moved_to"] else ""
    touched = f"  for {', '.join(row['touched_by'])}" if row["touched_by"] else ""
    word = "changed" if row["change"] == "reformatted" else _WORDS[row["change"]]  # what of it, is said below
    head = Text.assemble((f"{word:<8}", "yellow"), (name, "bold"), (line, "dim"), (touched, "dim"))
    console.print(_hanging("", head, 2, console))
    for text in _sentences(row, lines):
        console.print(_hanging("", Text(text), 10, console))
    shown = verbose or max(len(row["before"]), len(row["after"])) <= _LONG
    if row["before"] != row["after"] and shown:
        for sign, text, style in (("-", row["before"], "red"), ("+", row["after"], "green")):
            if text:
                console.print(_hanging("", Text(f"{sign} {text}", style), 10, console))


def _sentences(row: Row, lines: Mapping[str, int]) -> list[str]:
    if row["moved_to"]:
        return [f"to {_place(row['moved_to'], int(row['line']))}, the same code"]
    if row["namesake"]:
        return [f"one of this name is new: {_place(row['namesake'], lines.get(row['namesake'], 0))}"]
    return list(row["details"])


def _place(place: str, line: int) -> str:
    """``FILE:SYMBOL`` as people read it: ``SYMBOL in FILE:LINE``."""
    path, _, symbol = place.partition(":")
    return f"{symbol} in {path}" + (f":{line}" if line else "")


def _others(rows: Sequence[Row], console: Console, *, verbose: bool) -> None:
    counts = Counter(row["change"] for row in rows if row["change"] not in _FILES)
    if counts:
        words = ", ".join(f"{counts[kind]} {word}" for kind, word in _WORDS.items() if counts[kind])
        hint = "" if verbose else "; -v lists them"
        console.print()
        total = sum(counts.values())
        line = Text(f"{total} other change{'s' if total > 1 else ''} of watched files: {words}{hint}.")
        console.print(_hanging("", line, 0, console))


# --- steps -------------------------------------------------------------------------------------------------------


def _steps(steps: Sequence[Row], before: str, console: Console, *, verbose: bool) -> None:
    counts = Counter(StepProspect(row["prospect"]) for row in steps)
    words = ", ".join(f"{counts[item]} {_word(item, counts[item])}" for item in StepProspect if counts[item])
    console.print()
    title = Text.assemble(("What that means for the steps", "bold"), f": {words}")
    console.print(_hanging("", title, 0, console))
    console.print()
    width = max((len(row["step"]) for row in steps), default=0) + 2
    for row in steps:
        prospect = StepProspect(row["prospect"])
        line = Text.assemble((_word(prospect), _STYLES.get(prospect, "yellow")), _how(row, prospect, before))
        console.print(_hanging(row["step"], line, width, console))
        if row["changed_symbols"]:
            console.print(_hanging("", Text(_changed(row["changed_symbols"], verbose=verbose), "dim"), width, console))


def _word(prospect: StepProspect, number: int = 1) -> str:
    words = _plain(str(prospect))
    return words if number == 1 else words.replace("fits", "fit").replace("needs", "need")


def _how(row: Row, prospect: StepProspect, before: str) -> str:
    here, there = row["variant"], row["snapshot_variant"]
    if prospect is StepProspect.STILL_FITS:
        return f", by {here}"
    if prospect is StepProspect.FITS_BY_ANOTHER_VARIANT:
        return f": by {there} on {before}, by {here} here"
    if prospect is StepProspect.FITS:
        return f", by {here} ({f'how on {before}, is not known' if there is None else f'it did not fit {before}'})"
    if prospect is StepProspect.NEEDED_SINCE:
        return f": it had nothing to do on {before}; here by {here}"
    if prospect is StepProspect.NO_LONGER_NEEDED:
        return f": on {before} by {there}"
    if prospect is StepProspect.NEEDS_WORK:
        place = f"{row['path']}:{row['line']}" if row["path"] and row["line"] else row["path"]
        reason = row["reason"].removeprefix(f"{row['step']}: ")
        where = f" at {place}" if place else ""
        return f": {_plain(row['outcome'])}{where}{_past(there, before)}{f'. {reason}' if reason else ''}"
    return ""


def _past(there: str | None, before: str) -> str:
    if there is None:
        return ""
    return f" (on {before} by {there})" if there else f" (as on {before})"


def _plain(word: str) -> str:
    return word.replace("_", " ")


def _changed(symbols: Sequence[str], *, verbose: bool) -> str:
    names = list(dict.fromkeys(_name(item) for item in symbols))
    shown = names if verbose else names[:_SHOWN]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return f"changed: {', '.join(shown)}{more}"


def _name(symbol: str) -> str:
    path, _, name = symbol.partition(":")
    return f"(module) of {path.rpartition('/')[2]}" if name == _MODULE else name


def _hanging(margin: str, line: Text, width: int, console: Console) -> Text:
    """A name in the margin, and beside it lines that end within the terminal, without spaces up to its edge."""
    line.plain = printable(line.plain)  # names and signatures are a snapshot's, which may be anybody's file
    lines = line.wrap(console, max(console.width - width, 20))
    text = Text()
    for number, part in enumerate(lines):
        part.rstrip()
        text.append(("\n" if number else "") + f"{'' if number else margin:<{width}}").append_text(part)
    return text
