"""A patchset that is wrong in itself: always exit code 2, and the installation is not even looked at for writing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from bad_site import APPLY, SPEC_INFO, refused, untouched

from ddtree_patcher.model import ExitCode

HEAD = f"""\
from ddtree_patcher.codemods import AddEnumMember, AddFile, Anchor, InsertAfter
from ddtree_patcher.patchset import Patchset, Step, Variant
from ddtree_patcher.shape import Defines

FILE = "{SPEC_INFO}"


def step(name, *edits, requires=(), postcondition=()):
    variants = (Variant("only", edits=edits),)
    return Step(name, name, "why", variants, requires=requires, postcondition=postcondition)


def member(name):
    return AddEnumMember(FILE, "SpeculativeAlgorithm", name, after="DFLASH")


def patchset(*steps):
    return Patchset(
        id="bad", version="1", summary="s", distribution="sglang", package="sglang", supports=">=0", steps=steps
    )


"""
DECLARED = {
    "a cycle": (
        'step("a", requires=("c",)), step("b", requires=("a",)), step("c", requires=("b",))',
        "a -> c -> b -> a",
    ),
    "a step that requires itself": ('step("a", requires=("a",))', "a -> a"),
    "an unknown requirement": ('step("a", requires=("nowhere",))', "'nowhere'"),
    "two steps of one name": ('step("a"), step("a")', "two steps named a"),
    "no steps": ("", "no steps"),
    "one place without an order": (
        'step("a", member("AAA")), step("b", member("BBB"))',
        f"'a' and 'b' change the same place of {SPEC_INFO}",
    ),
    "a postcondition that is not reached": (
        'step("a", member("AAA"), postcondition=(Defines(FILE, "Nowhere"),))',
        "does not reach its own postcondition",
    ),
    "a pattern that is not Python": ('step("a", InsertAfter(FILE, Anchor("if (:"), "x = 1"))', "step 'a' cannot be"),
    "code that is not Python": ('step("a", InsertAfter(FILE, Anchor("import ..."), "x = = 1"))', "step 'a' cannot be"),
    "a file outside the tree": ('step("a", AddFile("../evil.py", b"x = 1"))', "'../evil.py'"),
    "a file of another package": ('step("a", AddFile("torch/evil.py", b"x = 1"))', "'torch/evil.py'"),
    "a way out of the package": ('step("a", AddFile("sglang/../evil.py", b"x = 1"))', "'sglang/../evil.py'"),
    "an absolute path": ('step("a", AddFile("/evil.py", b"x = 1"))', "'/evil.py'"),
}
WRITTEN = {
    "raises": ("raise RuntimeError('boom')\n", "RuntimeError: boom"),
    "ends the process": ("import sys\n\nsys.exit(3)\n", "SystemExit: 3"),
    "is not Python": ("def (\n", "SyntaxError"),
    "imports what is not there": ("import no_such_module\n", "No module named 'no_such_module'"),
    "lacks an argument": ("from ddtree_patcher.patchset import Patchset\n\nPATCHSET = Patchset(id='x')\n", "TypeError"),
    "has no PATCHSET": ("x = 1\n", "no PATCHSET"),
    "has another kind of PATCHSET": ("PATCHSET = 7\n", "no PATCHSET"),
}


@pytest.fixture
def patchset(tmp_path: Path) -> Callable[[str], Path]:
    """``patchset(code)``: a folder with that ``__init__.py``."""

    def make(code: str) -> Path:
        (tmp_path / "bad").mkdir()
        (tmp_path / "bad" / "__init__.py").write_text(code)
        return tmp_path / "bad"

    return make


@pytest.mark.parametrize("case", DECLARED)
def test_a_patchset_that_contradicts_itself(bench, run_here, patchset, case):
    here = bench()
    steps, says = DECLARED[case]
    folder = patchset(f"{HEAD}PATCHSET = patchset({steps})\n")
    with untouched(here.folder.parent):
        for command in (("plan",), APPLY):
            result = run_here("--root", here.folder, "--patchset", folder, *command)
            report = result.json
            assert (result.exit_code, report["exit_name"]) == (2, "usage")
            (first,) = report["diagnostics"]
            assert first["code"] == "patchset_invalid"
            assert says in first["summary"], first["summary"]
            assert first["remedy"]
            assert report["patchset"]["id"] in ("bad", "")


def test_an_order_settles_whose_place_it_is(bench, run_here, patchset):
    here = bench()
    code = f'{HEAD}PATCHSET = patchset(step("a", member("AAA")), step("b", member("BBB"), requires=("a",)))\n'
    assert run_here("--root", here.folder, "--patchset", patchset(code), "plan").exit_code == 0


@pytest.mark.parametrize("case", WRITTEN)
def test_a_patchset_that_cannot_be_loaded(bench, run_here, patchset, case):
    here = bench()
    code, says = WRITTEN[case]
    folder = patchset(code)
    with untouched(here.folder):
        result = run_here("--root", here.folder, "--patchset", folder, *APPLY)
        first = refused(result, ExitCode.USAGE, "patchset_invalid", str(folder), says)
    assert "docs/writing-a-patchset.md" in first["remedy"]


@pytest.mark.parametrize("tier", ["smoke", "e2e"])
@pytest.mark.parametrize("name", ["nowhere.py", "../elsewhere.py", "/dev/null", "folder"])
def test_a_program_that_is_no_file_of_the_patchset(bench, run_here, patchset, tmp_path, tier, name):
    here = bench()
    folder = patchset(f"{HEAD}PATCHSET = replace(patchset(step('a')), {tier}={name!r})\n")
    code = (folder / "__init__.py").read_text()
    (folder / "__init__.py").write_text(f"from dataclasses import replace\n\n{code}")
    (folder / "folder").mkdir()
    (tmp_path / "elsewhere.py").write_text("")
    with untouched(here.folder):
        result = run_here("--root", here.folder, "--patchset", folder, *APPLY)
        refused(result, ExitCode.USAGE, "patchset_invalid", f"{tier}={name!r}, which is no file in its folder")


@pytest.mark.parametrize("name", ["nowhere", "./nowhere", "{tmp}", "{tmp}/nowhere"])
@pytest.mark.parametrize("command", ["status", "plan"])
def test_a_patchset_that_is_not_there(bench, run_here, tmp_path, name, command):
    here = bench()
    name = name.format(tmp=tmp_path)
    with untouched(here.folder):
        result = run_here("--root", here.folder, "--patchset", name, command)
        first = refused(result, ExitCode.USAGE, "usage", name)
    assert "docs/writing-a-patchset.md" in first["remedy"]
