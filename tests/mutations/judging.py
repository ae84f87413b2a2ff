"""Carries out mutations on a tree as a release would have them, and judges what is planned there."""

from __future__ import annotations

import ast
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ddtree_patcher.model import Diagnostic, ExitCode, Severity
from ddtree_patcher.operations.planning import Selection, plan
from ddtree_patcher.operations.session import Options, Session
from mutations.cases import APPLIED, Mutation
from mutations.edits import Files, definition


@dataclass(frozen=True)
class Judgement:
    """What was planned on one mutated tree."""

    mutation: Mutation
    outcome: str  # ``applied``, or the words of the errors
    place: str  # where the nearest place is said to be; empty for ``applied``
    named: bool  # whether it is the right place
    seconds: float

    @property
    def misapplied(self) -> bool:
        return self.outcome == APPLIED != self.mutation.expected

    @property
    def right(self) -> bool:
        words = self.outcome.split(", ")
        return self.mutation.expected in words and (self.mutation.expected == APPLIED or self.named)


@contextmanager
def mutated(site: Path, mutations: Iterable[Mutation]) -> Iterator[Files]:
    """The tree with all of these mutations, RECORD rewritten as a release has it; afterwards as it was."""
    files = Files(site)
    for mutation in mutations:
        mutation.change(files)
    (record,) = site.glob("*.dist-info/RECORD")
    before: dict[Path, bytes | None] = {record: record.read_bytes()}
    for path, data in files.bytes():
        target = site / path
        before[target] = target.read_bytes() if target.exists() else None
        write(target, data or None)
        write(record, recorded(record.read_text(), path, data).encode())
    try:
        yield files
    finally:
        for target, content in before.items():
            write(target, content)


def judge(site: Path, mutation: Mutation) -> Judgement:
    """Plan on the mutated tree: does it fit, or which place is named?"""
    with mutated(site, [mutation]) as files:
        begun = time.process_time()
        report, _ = plan(Session(Options(root=str(site))), Selection())
        seconds = time.process_time() - begun
    errors = [item for item in report.diagnostics if item.severity is Severity.ERROR]
    if report.exit_code is ExitCode.OK:
        return Judgement(mutation, APPLIED, "", True, seconds)
    right = [item for item in errors if names_the_place(item, mutation, files)]
    shown = (right or errors)[0]
    words = ", ".join(dict.fromkeys(item.code for item in errors))
    return Judgement(mutation, words, f"{shown.path}:{shown.line}", bool(right), seconds)


def names_the_place(item: Diagnostic, mutation: Mutation, files: Files) -> bool:
    """Whether a refusal has the right word and points at the right line."""
    if (
        item.code != mutation.expected
        or item.path != f"sglang/srt/{mutation.where}"
        or not item.line
        or not item.remedy
    ):
        return False
    text = files.text(mutation.where)
    if mutation.inside:
        node = definition(text, mutation.inside)
        assert isinstance(node, ast.stmt)
        return node.lineno <= item.line <= (node.end_lineno or 0)
    return text.splitlines()[item.line - 1].strip().startswith(mutation.at)


def recorded(record: str, path: str, data: bytes) -> str:
    """RECORD with the row of a file as the wheel of such a release has it."""
    record = re.sub(rf"(?m)^{re.escape(path)},.*\n", "", record)
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{record}{path},sha256={digest},{len(data)}\n" if data else record


def write(path: Path, data: bytes | None) -> None:
    """A new file in the place of the old one, whose bytes other trees may share."""
    path.unlink(missing_ok=True)
    if data is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def linked(source: Path, folder: Path) -> Path:
    """A tree of hard links: whoever changes a file in there replaces it."""
    shutil.copytree(source, folder, copy_function=os.link)
    return folder


def prove(site: Path, mutations: Iterable[Mutation], python: str) -> str:
    """Apply to a tree that has all of these mutations at once, up to the smoke tier; what failed, or nothing."""
    with mutated(site, mutations):
        done = _tool(site, "--python", python, "apply", "--require", "smoke")
        reverted = _tool(site, "revert")
    shutil.rmtree(site / ".ddtree-patch", ignore_errors=True)
    return "".join(item.stdout + item.stderr for item in (done, reverted) if item.returncode)


def _tool(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / "ddtree-patch"
    return subprocess.run([program, "--root", site, *words], capture_output=True, text=True, check=False)
