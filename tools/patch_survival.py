"""How long an edit lives as text: ``python tools/patch_survival.py [PAGE]`` [docs/patchsets.md].

For every step of the second patchset the change that our tool makes on one release is taken as a unified diff, and
tried on every other release with GNU ``patch`` (default fuzz) and with ``git apply``. What they make is compared, as a
syntax tree, with what our tool makes there. The table goes into the page, between its marks.
"""

from __future__ import annotations

import ast
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from ddtree_patcher import patchset as patchsets
from ddtree_patcher.digest import Read
from ddtree_patcher.patchset import Step
from ddtree_patcher.planner import Draft, draft
from ddtree_patcher.snapshot_sources import read_wheel
from ddtree_patcher.tree import Tree
from fetch_wheels import fetch, releases

PATCHSET = "rocm"
ORIGINS = ("0.5.11", "0.5.18")  # where the diffs are made
TOO_OLD = ("0.5.9",)  # the patchset is for later ones
PAGE = Path(__file__).resolve().parent.parent / "docs" / "patchsets.md"
BEGIN, END = "<!-- made by `make patch-survival` -->", "<!-- end -->"
PROGRAMS = {"patch": ("patch", "-p1", "--force"), "git apply": ("git", "apply", "-p1", "--verbose")}


class Fate(Enum):
    """What became of a diff on another release; the value is its sign in the table."""

    CLEAN = "="  # applied where it was made, by line number
    OFFSET = "~"  # applied elsewhere in the file, its context whole
    FUZZY = "?"  # applied with a part of its context missing
    WRONG = "!"  # applied, and it is other code than our tool makes there
    NEEDLESS = "+"  # applied to a release that does not need it
    REJECTED = "x"  # not applied, or only a part of it


_LEGEND = {
    Fate.CLEAN: "applied at the same lines",
    Fate.OFFSET: "applied at other lines",
    Fate.FUZZY: "applied with fuzz",
    Fate.WRONG: "applied in the wrong place",
    Fate.NEEDLESS: "applied where it is not needed",
    Fate.REJECTED: "rejected",
}


@dataclass(frozen=True, slots=True)
class Made:
    """What our tool makes of one step on one release."""

    outcome: str  # a word of StepOutcome, or the variant where it is done
    files: Mapping[str, tuple[bytes, bytes]]  # path -> before, after


@dataclass(frozen=True, slots=True)
class Survival:
    """Step -> release -> what our tool does; (step, origin, program) -> release -> what becomes of the text."""

    versions: tuple[str, ...]
    ours: Mapping[str, Mapping[str, str]]
    texts: Mapping[tuple[str, str, str], Mapping[str, Fate]]


def measure(wheels: Mapping[str, Path]) -> Survival:
    """Every step, every origin, every program, on every release. Refuses to go on without a program."""
    for program, command in PROGRAMS.items():
        if shutil.which(command[0]) is None:
            raise SystemExit(f"{command[0]} is not installed: what becomes of a diff under `{program}` cannot be told")
    reads = {version: read_wheel(path).read for version, path in wheels.items()}
    ours: dict[str, dict[str, str]] = {}
    texts: dict[tuple[str, str, str], dict[str, Fate]] = {}
    for step in patchsets.load(PATCHSET).patchset.steps:
        made = {version: make(step, read) for version, read in reads.items()}
        ours[step.id] = {version: item.outcome for version, item in made.items()}
        for origin in (version for version in ORIGINS if made[version].files):
            text = unified(made[origin].files)
            for program, command in PROGRAMS.items():
                texts[step.id, origin, program] = {
                    version: fate_of(text, made[origin].files, command, made[version], reads[version])
                    for version in reads
                    if version != origin
                }
    return Survival(tuple(reads), ours, texts)


def make(step: Step, read: Read) -> Made:
    """One step alone, as if it required nothing."""
    loaded = patchsets.load(PATCHSET).patchset
    result: Draft = draft(replace(loaded, steps=(replace(step, requires=()),)), Tree(read))
    (only,) = result.steps
    outcome = only.variant if result.files else only.outcome.value
    return Made(outcome, {item.path: (item.pristine, item.desired) for item in result.files})


def unified(files: Mapping[str, tuple[bytes, bytes]]) -> bytes:
    """The change as ``plan --diff`` shows it."""
    lines: list[str] = []
    for path, (before, after) in files.items():
        old, new = (data.decode("utf-8").splitlines(keepends=True) for data in (before, after))
        lines += difflib.unified_diff(old, new, f"a/{path}", f"b/{path}")
    return "".join(lines).encode()


def fate_of(text: bytes, paths: Iterable[str], command: Sequence[str], wanted: Made, read: Read) -> Fate:
    """What a program makes of a diff on one release, in a folder that has nothing but the files that the diff names."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = {path: data for path in paths if (data := _read(read, path)) is not None}
        for path, data in before.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        # git would look for a repository above, and skip what lies outside of it, with exit code 0.
        environment = {**os.environ, "LC_ALL": "C", "GIT_CEILING_DIRECTORIES": str(folder.parent)}
        done = subprocess.run(command, cwd=folder, input=text, capture_output=True, env=environment, check=False)
        after = {path: (folder / path).read_bytes() for path in before}
    if done.returncode != 0 or after == before:
        return Fate.REJECTED
    if not wanted.files:
        return Fate.NEEDLESS
    desired = {**before, **{path: pair[1] for path, pair in wanted.files.items()}}
    if set(wanted.files) - set(after) or not all(_same(after[path], desired[path]) for path in after):
        return Fate.WRONG
    said = (done.stdout + done.stderr).decode()
    if "fuzz" in said:
        return Fate.FUZZY
    return Fate.OFFSET if "offset" in said else Fate.CLEAN


def _read(read: Read, path: str) -> bytes | None:
    try:
        return read(path)
    except FileNotFoundError:
        return None


def _same(left: bytes, right: bytes) -> bool:
    """Whether two files are the same code, whatever their layout."""
    if left == right:
        return True
    try:
        return ast.dump(ast.parse(left)) == ast.dump(ast.parse(right))
    except SyntaxError:
        return False


def render(survival: Survival) -> str:
    """The two tables, as markdown."""
    return "\n".join([*_summary(survival), "", *_details(survival), ""])


def _summary(survival: Survival) -> Iterator[str]:
    yield "| step | diff made on | under | " + " | ".join(_LEGEND.values()) + " | our tool |"
    yield "|---" * (4 + len(_LEGEND)) + "|"
    for (step, origin, program), fates in survival.texts.items():
        counts = Counter(fates.values())
        numbers = " | ".join(str(counts[fate] or "") for fate in Fate)
        yield f"| `{step}` | {origin} | `{program}` | {numbers} | {_ours(survival, step, origin)} |"


def _ours(survival: Survival, step: str, origin: str) -> str:
    """How many of the other releases our tool has an answer for, and how."""
    others = Counter(outcome for version, outcome in survival.ours[step].items() if version != origin)
    return ", ".join(f"{count} `{outcome}`" for outcome, count in others.items())


def _details(survival: Survival) -> Iterator[str]:
    yield ", ".join(f"`{fate.value}` {words}" for fate, words in _LEGEND.items()) + ", `o` where it was made."
    yield ""
    yield "| step | under | " + " | ".join(survival.versions) + " |"
    yield "|---" * (2 + len(survival.versions)) + "|"
    for (step, origin, program), fates in survival.texts.items():
        signs = " | ".join("o" if version == origin else f"`{fates[version].value}`" for version in survival.versions)
        yield f"| `{step}` | `{program}` | {signs} |"


def page_with(page: str, table: str) -> str:
    """The page with the table between its marks; refuses a page that lacks them."""
    pattern = re.compile(f"(?<={re.escape(BEGIN)}\n).*?(?={re.escape(END)})", re.S)
    changed, count = pattern.subn(lambda _: f"\n{table}\n", page)
    if count != 1:
        raise SystemExit(f"the page has no single pair of marks {BEGIN} … {END}")
    return changed


def wheels_of() -> dict[str, Path]:
    return {version: fetch(version) for version in releases() if version not in TOO_OLD}


def main(page: Path) -> None:
    page.write_text(page_with(page.read_text("utf-8"), render(measure(wheels_of()))), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else PAGE)
