"""``diff`` for people: every kind of change and of prospect in words, on terminals of any width."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from ddtree_patcher.model import ExitCode, Report, StepProspect
from ddtree_patcher.report import as_text
from ddtree_patcher.snapshot_compare import ChangeKind

A, B = "pkg/a.py", "pkg/deep/down/b.py"


def change(kind: str, symbol: str, path: str = A, **more: Any) -> dict[str, Any]:
    row = {"change": kind, "path": path, "symbol": symbol, "before": "", "after": "", "moved_to": "", "line": 0}
    return {**row, "details": [], "namesake": "", "touched_by": ["one"], **more}


def step(name: str, prospect: str, variant: str = "new", there: str | None = "old", **more: Any) -> dict[str, Any]:
    row = {"step": name, "prospect": prospect, "outcome": "pending", "variant": variant, "snapshot_variant": there}
    return {**row, "path": "", "line": 0, "reason": "", "changed_symbols": [], **more}


def drawn(
    changes: list[dict[str, Any]],
    steps: list[dict[str, Any]],
    *,
    width: int = 100,
    verbose: bool = False,
    before: str = "1.0",
    after: str = "2.0",
    **snapshot: Any,
) -> str:
    facts = {"distribution": "pkg", "version": after, "kind": "wheel", "installer": "pip", "root": "/x/pkg"}
    facts |= {"python": "/x/python", "python_version": "3.11"}
    compared = {"version": before, "chosen": "named", "agreement": 0.876, "files": 3, "identical_files": 1, **snapshot}
    extra = {"snapshot": compared, "changes": changes, "meaning": steps}
    console = Console(file=io.StringIO(), width=width, color_system=None)
    as_text.render(Report("diff", ExitCode.OK, "ok", facts, extra=extra), console, verbose=verbose)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_headline_says_from_where_to_where_and_how_alike_they_are() -> None:
    text = drawn([], [step("one", "still_fits")])
    assert "From 1.0 to 2.0\n" in text
    assert "87.6% of the snapshot's symbols are the same; 1 of 3 watched files is the same byte for byte." in text
    assert "Nothing that we touch differs." in text


def test_the_headline_of_a_downgrade_of_the_same_release_and_of_a_nearest_snapshot() -> None:
    assert "From 2.0 to 1.0, an earlier release\n" in drawn([], [], before="2.0", after="1.0")
    assert "2.0, beside the snapshot of 2.0\n" in drawn([], [], before="2.0", after="2.0")
    assert "From x to y\n" in drawn([], [], before="x", after="y")
    assert "(no snapshot has this version; the nearest one by content)" in drawn([], [], chosen="nearest")


def test_symbols_stand_by_file_with_what_became_of_them() -> None:
    details = ["parameter n added, default 1"]
    text = drawn(
        [
            change("changed", "f", before="()", after="(n=1)", line=7, details=details, touched_by=["one", "two"]),
            change("removed", "g", before="(x)", namesake=f"{B}:C.g"),
            change("moved", "h", moved_to=f"{B}:h", line=9),
            change("reformatted", "k", line=3, details=["only formatting, comments or docstrings changed"]),
            change("changed", "<module>", line=1, details=["imports or module-level statements changed"]),
            change("file_added", "", B),
            change("added", "C.g", B, after="(self, x)", line=4),
        ],
        [step("one", "still_fits")],
    )
    body = text.partition("Changed in the code that we touch\n")[2].partition("\nWhat that means")[0]
    assert body.splitlines() == [
        "",
        "pkg/a.py",
        "  changed f:7  for one, two",
        "          parameter n added, default 1",
        "          - ()",
        "          + (n=1)",
        "  gone    g  for one",
        f"          one of this name is new: C.g in {B}:4",
        "          - (x)",
        "  moved   h  for one",
        f"          to h in {B}:9, the same code",
        "  changed k:3  for one",
        "          only formatting, comments or docstrings changed",
        "  changed (module)  for one",
        "          imports or module-level statements changed",
        "",
        f"{B} (new file)",
        "  new     C.g:4  for one",
        "          + (self, x)",
    ]


def test_a_long_signature_is_shown_with_v_alone_but_what_changed_of_it_always() -> None:
    long = f"({', '.join(f'parameter_{number}' for number in range(20))})"
    row = change("changed", "f", before="()", after=long, details=["parameter parameter_0 added, required"])
    quiet, verbose = drawn([row], []), drawn([row], [], verbose=True)
    assert "parameter_0 added" in quiet and "parameter_19" not in quiet
    assert "parameter_0 added" in verbose and "parameter_19" in verbose


def test_other_changes_are_one_line_and_a_list_with_v() -> None:
    others = [change(kind, f"{kind}_one", touched_by=[]) for kind in ("changed", "changed", "added", "removed")]
    text = drawn(others, [])
    assert "Nothing that we touch differs." in text
    assert "4 other changes of watched files: 2 changed, 1 new, 1 gone; -v lists them." in text
    assert "changed_one" not in text
    verbose = drawn(others, [], verbose=True)
    assert "1 gone." in verbose and "Other changes of watched files\n" in verbose and "changed_one" in verbose
    assert "1 other change of watched files: 1 new; -v lists them." in drawn(others[2:3], [])


def test_each_prospect_is_said_in_words() -> None:
    conflict = {"outcome": "anchor_missing", "path": A, "line": 5, "reason": "e: cannot find x"}
    rows = [
        step("a", "still_fits", "v", "v"),
        step("b", "fits_by_another_variant", changed_symbols=[f"{A}:f", f"{B}:f", f"{A}:<module>"]),
        step("c", "fits", there=None),
        step("d", "fits", there=""),
        step("e", "needs_work", "", **conflict),
        step("f", "needs_work", "", there="", outcome="file_missing", reason="why"),
        step("g", "needed_since", there="free"),
        step("h", "no_longer_needed", "free"),
        step("i", "upstreamed"),
        step("k", "not_needed"),
        step("l", "needs_work", "", there=None, outcome="blocked_by", reason="waits"),
        step("m", "needs_work", "", there=None, outcome="not_roundtrippable"),
    ]
    assert {row["prospect"] for row in rows} == {item.value for item in StepProspect}
    text = drawn([], rows)
    assert (
        "What that means for the steps: 1 still fits, 1 fits by another variant, 2 fit, 4 need work, "
        "1 needed since, 1 no longer needed, 1 upstreamed, 1 not needed"
    ) in " ".join(text.split())
    assert text.partition("1 not needed\n\n")[2].splitlines()[:13] == [
        "a  still fits, by v",
        "b  fits by another variant: by old on 1.0, by new here",
        "   changed: f, (module) of a.py",
        "c  fits, by new (how on 1.0, is not known)",
        "d  fits, by new (it did not fit 1.0)",
        "e  needs work: anchor missing at pkg/a.py:5 (on 1.0 by old). cannot find x",
        "f  needs work: file missing (as on 1.0). why",
        "g  needed since: it had nothing to do on 1.0; here by new",
        "h  no longer needed: on 1.0 by old",
        "i  upstreamed",
        "k  not needed",
        "l  needs work: blocked by. waits",
        "m  needs work: not roundtrippable",
    ]


def test_of_many_changed_symbols_some_are_named_and_all_with_v() -> None:
    row = step("a", "still_fits", changed_symbols=[f"{A}:f{number}" for number in range(6)])
    assert "changed: f0, f1, f2, f3 and 2 more\n" in drawn([], [row])
    assert "changed: f0, f1, f2, f3, f4, f5\n" in drawn([], [row], verbose=True)


@pytest.mark.parametrize("width", [40, 60, 200])
def test_no_line_is_wider_than_the_terminal_or_ends_in_spaces(width: int) -> None:
    rows = [
        change(kind.value, "Some.rather_long_name_of_a_method" if "file" not in kind.value else "", **more)
        for kind in ChangeKind
        for more in ({"before": "(self, *, batch: Batch)", "details": ["parameter batch is gone"], "line": 1234},)
    ]
    steps = [step(f"step-{item.value}"[:14], item.value, changed_symbols=[f"{A}:Some.name"]) for item in StepProspect]
    text = drawn(rows, steps, width=width, chosen="nearest")
    mine = text.partition("Python 3.11)\n")[2].rpartition("\ndiff: ok")[0].splitlines()
    assert len(mine) > 30
    assert [line for line in mine if len(line) > width or line != line.rstrip()] == []


def test_all_but_all_is_not_all() -> None:
    assert "99.9% of the snapshot's symbols" in drawn([], [], agreement=0.9999)
    assert "100.0% of the snapshot's symbols" in drawn([], [], agreement=1.0)


def test_a_snapshot_tells_a_terminal_nothing() -> None:
    text = drawn([change("added", "f\x1b[2J", after="(a='\x1b]0;x\x07')")], [])
    assert "f\\x1b[2J" in text and "\x1b" not in text and "\x07" not in text


def test_signatures_are_no_markup() -> None:
    text = drawn([change("added", "f", after="(a: dict[str, int]) -> list[bold]")], [])
    assert "+ (a: dict[str, int]) -> list[bold]" in text
