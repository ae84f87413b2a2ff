"""``make drift-table``: every mutation, what became of it, which place was named. Ends with 1 unless all are right."""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

import fetch_wheels
import wheel_tree
from mutations.cases import APPLIED, MUTATIONS, RELEASES
from mutations.judging import Judgement, judge, prove

COLUMNS = ("release", "mutation", "file", "expected", "outcome", "place named", "seconds")


def main(python: str) -> int:
    console = Console(width=None if sys.stdout.isatty() else 200)
    wheels = Path(os.environ.get("DDTREE_TEST_WHEELS") or fetch_wheels.WHEELS)
    wheels.mkdir(parents=True, exist_ok=True)
    found: list[Judgement] = []
    unproved: dict[str, str] = {}
    for release in RELEASES:
        with tempfile.TemporaryDirectory() as folder:
            site = Path(folder)
            wheel_tree.unpack(fetch_wheels.fetch(release, wheels), site)
            mine = [item for item in MUTATIONS if item.release == release]
            found += [judge(site, item) for item in mine]
            console.print(f"{release}: {len(mine)} mutations planned; smoke tier on those that fit", style="dim")
            if said := prove(site, [item for item in mine if item.expected == APPLIED], python):
                unproved[release] = said
    console.print(drawn(found, unproved))
    for release, said in unproved.items():
        console.print(f"{release}: what fits does not work:\n{said}", style="bold red", markup=False)
    return closing(found, unproved, console)


def drawn(found: list[Judgement], unproved: dict[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in COLUMNS:
        table.add_column(name, justify="right" if name == "seconds" else "left", overflow="fold")
    for item in found:
        case = item.mutation
        good = item.right and not (case.expected == APPLIED and case.release in unproved)
        outcome = f"[{'green' if good else 'bold red'}]{word(item, unproved)}[/]"
        name = case.id.partition(": ")[2]
        place = item.place.removeprefix("sglang/srt/")
        table.add_row(case.release, name, case.path, case.expected, outcome, place, f"{item.seconds:.1f}")
    return table


def word(item: Judgement, unproved: dict[str, str]) -> str:
    if item.misapplied:
        return "MISAPPLIED"
    if item.outcome == APPLIED and item.mutation.release in unproved:
        return "applied, smoke failed"
    if item.outcome == APPLIED:
        return "applied, smoke passed"
    return f"refused: {item.outcome}" if item.right else f"refused, elsewhere: {item.outcome}"


def closing(found: list[Judgement], unproved: dict[str, str], console: Console) -> int:
    counts = Counter("misapplied" if item.misapplied else "right" if item.right else "wrong place" for item in found)
    fit = sum(item.outcome == APPLIED for item in found)
    line = f"{len(found)} mutations of {len(RELEASES)} releases: {fit} applied, {len(found) - fit} refused; "
    line += f"{counts['misapplied']} misapplied, {counts['wrong place']} named another place"
    good = counts["right"] == len(found) and not unproved
    console.print(line, style="bold green" if good else "bold red")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
