"""Bytes as they are: what is changed is the place that a step means, and not one byte beside it.

patch-package #191, milahu #26, OpenWA #987, codemodder #765: files with Windows line ends came out mixed, or "corrupt".
bun #35099 and SGLang's own ``qwen2_classification.py``: a byte-order mark was lost.
"""

from __future__ import annotations

import codecs
import subprocess
import sys
from pathlib import Path

import pytest
from shipped import BOM, world_of

from ddtree_patcher.model import ExitCode, FileStatus, StepOutcome, Tier
from transaction.world import World

ALPHA = "tiny/alpha.py"
VALUE = b"value = 'old'\n"
PLAIN = b"import os\n\nvalue = 'old'\n"


def nested(depth: int) -> bytes:
    """A statement below ``depth`` blocks; Python's own limit is 100."""
    return b"".join(b" " * level + b"if 1:\n" for level in range(depth)) + b" " * depth + VALUE


# Each says 'old' once: what it must become is known without the tool.
ACCEPTED = {
    "windows": PLAIN.replace(b"\n", b"\r\n"),
    "mixed-newlines": b"import os\r\n\nvalue = 'old'\nx = 1\r\ny = 2\r\n",
    "byte-order-mark": BOM + PLAIN,
    "byte-order-mark-windows": BOM + PLAIN.replace(b"\n", b"\r\n"),
    "byte-order-mark-and-cookie": BOM + b"# -*- coding: utf-8 -*-\n" + VALUE,
    "cookie": b"#!/usr/bin/env python\n# vim: set fileencoding=utf-8 :\nname = '\xc3\xa9'\n" + VALUE,
    "utf-8-sig-cookie": b"# coding: utf-8-sig\n" + VALUE,
    "tabs": b"if 1:\n\tif 1:\n\t\tvalue = 'old'\n",
    "tabs-and-spaces": b"if 1:\n\tvalue = 'old'\nif 1:\n        x = 1\n",
    "form-feeds": b"import os\n\f\nx = 1\n\f\nvalue = 'old'\n\f\n",
    "no-final-newline": PLAIN.removesuffix(b"\n"),
    "no-final-newline-windows": PLAIN.replace(b"\n", b"\r\n").removesuffix(b"\r\n"),
    "one-line": b"value='old'",
    "blanks-at-line-ends": b"import os   \n\t\n   \nvalue = 'old'  \t\n   ",
    "continued": b"value = \\\n    'old'\n",
    "continued-windows": b"x = (1,\r\n     2)\r\nvalue = \\\r\n    'old'\r\n",
    "letters-of-four-bytes-before-it": "value = ('é😀\u2028\u0085', 'old')[1]  # 中文\n".encode(),
    "a-line-of-a-million": b"x = '" + b"y" * 1_000_000 + b"'\n" + VALUE,
    "at-the-end-of-a-line-of-a-million": b"value = ('" + b"y" * 1_000_000 + b"', 'old')[1]\n",
    "in-ninety-blocks": nested(90),
    "in-ninety-brackets": b"value = " + b"(" * 90 + b"'old'" + b")" * 90 + b"\n",
    "beside-nested-lists": b"x = " + b"[" * 90 + b"]" * 90 + b"\n" + VALUE,
    "beside-a-long-sum": b"x = " + b" + ".join([b"1"] * 500) + b"\n" + VALUE,
    "five-megabytes-of-statements": b"".join(b"v%06d = '%s'\n" % (n, b"z" * 1000) for n in range(5_000)) + VALUE,
    "five-megabytes-of-comments": b"# a comment as people write it and as nobody reads it, of some length\n" * 75_000
    + VALUE,
}
DEEP = {
    "a-sum-of-twenty-thousand": b"x = " + b" + ".join([b"1"] * 20_000) + b"\n" + VALUE,
    "twenty-thousand-nots": b"x = " + b"not " * 20_000 + b"1\n" + VALUE,
    "three-hundred-brackets": b"x = " + b"(" * 300 + b"1" + b")" * 300 + b"\n" + VALUE,
    "two-hundred-blocks": nested(200),
}
REFUSED = {
    "latin-1": b"# -*- coding: latin-1 -*-\nname = '\xe9'\n" + VALUE,
    "latin-1-that-is-ascii": b"# -*- coding: latin-1 -*-\n" + VALUE,
    "cp1252": b"# coding: cp1252\nname = '\x80'\n" + VALUE,
    "utf-7": b"# coding: utf-7\n" + VALUE,
    "latin-1-that-does-not-say-so": b"name = '\xe9'\n" + VALUE,
    "utf-8-that-is-not": b"# coding: utf-8\nname = '\xff'\n" + VALUE,
    "byte-order-mark-and-latin-1": BOM + b"# coding: latin-1\n" + VALUE,
    "utf-16": PLAIN.decode().encode("utf-16"),
    "utf-16-without-a-mark": PLAIN.decode().encode("utf-16-le"),
    "utf-32": codecs.BOM_UTF32_LE + PLAIN.decode().encode("utf-32-le"),
    "a-zero-byte": PLAIN + b"\0",
    "an-unknown-encoding": b"# coding: klingon\n" + VALUE,
    "old-mac": PLAIN.replace(b"\n", b"\r"),  # Python can read it, and libcst does not print it as it was
    "a-form-feed-before-a-statement": b"import os\n\fvalue = 'old'\n",
    "two-statements-in-a-line": b"x = 1; value = 'old'\n",
    **DEEP,
}


def value(world: World) -> str:
    """What a fresh interpreter says ``tiny.alpha.value`` is."""
    program = "import tiny.alpha; print(tiny.alpha.value)"
    command = [sys.executable, "-B", "-S", "-E", "-c", program]
    return subprocess.run(command, cwd=world.site, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("case", ACCEPTED)
def test_nothing_changes_but_the_place(tmp_path: Path, case: str) -> None:
    data = ACCEPTED[case]
    assert data.count(b"'old'") == 1
    world = world_of(tmp_path / "world", {ALPHA: data})
    before = world.footprint()
    report = world.apply(Tier.STATIC)
    assert report.exit_code is ExitCode.OK, report.diagnostics
    assert world.read(ALPHA) == data.replace(b"'old'", b"'new'")
    assert value(world) == "new"
    assert world.revert().exit_code is ExitCode.OK
    assert world.footprint() == before
    assert value(world) == "old"


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_edited_safely_is_refused_whole(tmp_path: Path, case: str) -> None:
    """Also what it is not the fault of the patchset, and never a traceback."""
    world = world_of(tmp_path / "world", {ALPHA: REFUSED[case]})
    before = world.footprint()
    report = world.apply(Tier.STATIC)
    assert report.exit_code is ExitCode.CONFLICT
    outcomes = {step.id: step.outcome for step in report.steps}
    assert outcomes["value"] is StepOutcome.NOT_ROUNDTRIPPABLE
    first = report.diagnostics[0]
    assert (first.code, first.path) == ("not_roundtrippable", ALPHA) and first.remedy and ALPHA in first.summary
    assert world.footprint() == before
    assert world.status() == "clean"


@pytest.mark.parametrize("case", ["latin-1", "utf-16", "a-sum-of-twenty-thousand"])
def test_a_file_that_no_step_changes_may_be_anything(tmp_path: Path, case: str) -> None:
    world = world_of(tmp_path / "world", {"tiny/other.py": REFUSED[case]})
    before = world.footprint()
    assert world.apply(Tier.STATIC).exit_code is ExitCode.OK
    assert world.read("tiny/other.py") == REFUSED[case]
    world.revert()
    assert world.footprint() == before


PLACES = ["with spaces", "ümläut-中文-😀", "quo'te\"s, and (brackets) [1] *?", "-dash", "%41$HOME~", "new\nline"]


@pytest.mark.parametrize("name", PLACES)
def test_a_folder_of_any_name(tmp_path: Path, name: str) -> None:
    world = world_of(tmp_path / name, {})
    before = world.footprint()
    assert world.apply(Tier.STATIC).exit_code is ExitCode.OK
    assert world.status() == "applied"
    assert value(world) == "new"
    world.revert()
    assert world.footprint() == before


def test_a_folder_whose_name_is_no_text(tmp_path: Path) -> None:
    """A byte that is no UTF-8, as on an old disk."""
    world = world_of(tmp_path / "caf\udce9", {})
    before = world.footprint()
    assert world.apply(Tier.STATIC).exit_code is ExitCode.OK
    assert value(world) == "new"
    world.revert()
    assert world.footprint() == before


@pytest.mark.parametrize("name", ["with space.py", "ümläut_中文.py", "com,ma.py", 'quo"te.py', "[a]*?.py", "a.b.c.py"])
def test_files_of_any_name(tmp_path: Path, name: str) -> None:
    """One that is changed and one that is added: RECORD's rows are quoted, and bytecode is found by its exact name."""
    world = world_of(tmp_path / "world", {f"tiny/{name}": PLAIN})
    text = (world.patchset / "__init__.py").read_text()
    text = text.replace('A = "tiny/alpha.py"', f"A = {f'tiny/{name}'!r}")
    text = text.replace("tiny/made/deep/extra.py", "tiny/made/" + name.replace('"', '\\"'))
    (world.patchset / "__init__.py").write_text(text)
    before = world.footprint()
    report = world.apply(Tier.STATIC)
    assert report.exit_code is ExitCode.OK, report.diagnostics
    assert world.read(f"tiny/{name}") == PLAIN.replace(b"old", b"new")
    assert {item.status for item in report.files} == {FileStatus.PATCHED}
    assert f"tiny/made/{name}" in {item.path for item in report.files}
    assert world.apply(Tier.STATIC).exit_code is ExitCode.OK
    world.revert()
    assert world.footprint() == before


def test_a_patchset_with_windows_line_ends_does_the_same(tmp_path: Path) -> None:
    """patch-package #191: a patch that git checked out with CRLF was corrupt. A patchset is code, and no patch text."""
    one, two = world_of(tmp_path / "one", {}), world_of(tmp_path / "two", {})
    code = two.patchset / "__init__.py"
    code.write_bytes(code.read_bytes().replace(b"\n", b"\r\n"))
    one.apply()
    two.apply()
    assert one.contents() == two.contents()
    assert one.read(ALPHA) != PLAIN.replace(b"\n", b"\r\n")


def test_a_patchset_that_was_edited_by_hand_has_no_counts_to_get_wrong(tmp_path: Path) -> None:
    """TorchSpec #98, SpecForge #776, patchy #395: hunk headers that no longer counted right."""
    one, two = world_of(tmp_path / "one", {}), world_of(tmp_path / "two", {})
    code = two.patchset / "__init__.py"
    code.write_text("# A line more.\n\n\n" + code.read_text().replace("steps=(", "steps=(  # by hand\n\n"))
    one.apply()
    two.apply()
    assert one.contents() == two.contents()


@pytest.mark.parametrize("lines", [1, 7, 500])
def test_lines_above_do_not_matter(tmp_path: Path, lines: int) -> None:
    """The same: a structural step has no line numbers."""
    world = world_of(tmp_path / "world", {ALPHA: b"# upstream wrote more\n" * lines + PLAIN})
    assert world.apply().exit_code is ExitCode.OK
    assert world.read(ALPHA) == b"# upstream wrote more\n" * lines + PLAIN.replace(b"old", b"new")
