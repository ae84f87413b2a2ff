"""The speed that is promised, as ratios of wall times measured side by side in one run: ``make bench``.

Every program is a process of its own, started anew each time, on a tree of SGLang 0.5.11 that is fresh where it is
written to. The programs of a comparison take turns, and the shortest of their times counts: what else the machine does
can only add to a time. The tree is measured by ``bench_tree.py``, in the interpreter that has torch. Ends with status 1
when a bound is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

import wheel_tree
from fetch_wheels import fetch

HERE = Path(__file__).resolve().parent
TORCH_PYTHON = os.environ.get("DDTREE_TEST_SGLANG_PYTHON") or HERE.parents[1] / ".venv-sglang" / "bin" / "python"
VERSION = "0.5.11"
PROGRAM = str(Path(sys.executable).parent / "ddtree-patch")
PARSE_AND_PRINT = """
import sys
import click, libcst, rich.console
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        data = file.read()
    assert libcst.parse_module(data).bytes == data
"""


@dataclass(frozen=True)
class Contender:
    """What is timed, and what is made ready before each time, which is not."""

    name: str
    run: Callable[[], None]
    prepare: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Comparison:
    """Ours takes at most ``bound`` times as long as theirs."""

    ours: Contender
    theirs: Contender
    bound: float


@dataclass(frozen=True)
class Measured:
    """A comparison's times in seconds, every one of them."""

    comparison: Comparison
    ours: Sequence[float]
    theirs: Sequence[float]

    @property
    def ratio(self) -> float:
        return min(self.ours) / min(self.theirs)

    @property
    def held(self) -> bool:
        return self.ratio <= self.comparison.bound


class Bench:
    """The programs, in a scratch folder that holds a pristine tree, one to write to, and one that is patched."""

    def __init__(self, scratch: Path) -> None:
        self.pristine, self.fresh, self.patched = scratch / "pristine", scratch / "fresh", scratch / "patched"
        wheel = fetch(VERSION)
        wheel_tree.unpack(wheel, self.pristine)
        wheel_tree.unpack(wheel, self.patched)
        _run(PROGRAM, "--root", self.patched, "apply", "--verify", "static")
        steps = _report("--root", self.pristine, "plan")["steps"]
        self.files = {step["id"]: [path for path in step["files"] if self._exists(path)] for step in steps}
        self.project = scratch / "project"
        self.project.mkdir()
        shutil.copy2(HERE / "traverse.py", self.project)
        (self.project / ".libcst.codemod.yaml").write_text("modules: ['libcst.codemod.commands']\nrepo_root: '.'\n")

    def _exists(self, path: str) -> bool:
        return (self.pristine / path).is_file()  # one that a step adds is not parsed

    def comparisons(self) -> Sequence[Comparison]:
        apply = Contender("apply --verify static", self.apply, self.make_fresh)
        bare = Contender("python -c 'import click, rich.console'", self.start)
        return (
            Comparison(apply, Contender("libcst parse and print of every file", self.parse_and_print), 1.5),
            Comparison(apply, Contender("libcst.tool codemod, a process a step", self.codemods), 0.1),
            Comparison(Contender("status, nothing applied", lambda: self.status(self.pristine)), bare, 3),
            Comparison(Contender("status, applied", lambda: self.status(self.patched)), bare, 3),
        )

    def make_fresh(self) -> None:
        shutil.rmtree(self.fresh, ignore_errors=True)
        shutil.copytree(self.pristine, self.fresh)
        os.sync()  # or the first fsync of ours would wait until the disk has this copy

    def apply(self) -> None:
        _run(PROGRAM, "--root", self.fresh, "apply", "--verify", "static")

    def status(self, folder: Path) -> None:
        _run(PROGRAM, "--root", folder, "status")

    def start(self) -> None:
        _run(sys.executable, "-c", "import click, rich.console")

    def parse_and_print(self) -> None:
        touched = sorted({path for paths in self.files.values() for path in paths})
        _run(sys.executable, "-c", PARSE_AND_PRINT, *(self.pristine / path for path in touched))

    def codemods(self) -> None:
        tool = (sys.executable, "-m", "libcst.tool", "codemod", "-x", "traverse.Traverse", "--no-format", "--jobs=1")
        for paths in self.files.values():
            if paths:
                _run(*tool, *(self.pristine / path for path in paths), cwd=self.project)


def measure(comparison: Comparison, times: int) -> Measured:
    contenders = (comparison.ours, comparison.theirs)
    found: dict[str, list[float]] = {item.name: [] for item in contenders}
    for _ in range(times):
        for item in contenders:
            item.prepare()
            begun = time.perf_counter()
            item.run()
            found[item.name].append(time.perf_counter() - begun)
    return Measured(comparison, found[comparison.ours.name], found[comparison.theirs.name])


def draw(results: Sequence[Measured]) -> None:
    table = Table("ours", "shortest", "theirs", "shortest", "ratio", "bound", "")
    for item in results:
        ours, theirs = item.comparison.ours, item.comparison.theirs
        seconds = (f"{min(item.ours):.3f} s", f"{min(item.theirs):.3f} s")
        verdict = "held" if item.held else "MISSED"
        table.add_row(
            ours.name, seconds[0], theirs.name, seconds[1], f"{item.ratio:.3f}", f"{item.comparison.bound:g}", verdict
        )
    Console(width=max(140, Console().width)).print(table)


def tree_held() -> bool:
    """Whether the bound on the tree holds; its figures are printed by its own program."""
    environment = os.environ | {"PYTHONPATH": str(HERE.parent)}
    return not subprocess.run([TORCH_PYTHON, HERE / "bench_tree.py"], env=environment, check=False).returncode


def _run(*command: str | Path, cwd: Path | None = None) -> None:
    done = subprocess.run(list(map(str, command)), capture_output=True, stdin=subprocess.DEVNULL, cwd=cwd, check=False)
    if done.returncode:
        sys.exit(f"bench: {command} ended with status {done.returncode}\n{done.stdout.decode()}{done.stderr.decode()}")


def _report(*arguments: str | Path) -> dict[str, list[dict[str, object]]]:
    command = [PROGRAM, "--format", "json", *map(str, arguments)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures the speed that is promised.")
    parser.add_argument("--times", type=int, default=7, help="how often each program is run [7]")
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory(prefix="ddtree-bench-") as scratch:
        bench = Bench(Path(scratch))
        results = [measure(item, times) for item in bench.comparisons()]
    draw(results)
    return 0 if all([tree_held(), *(item.held for item in results)]) else 1


if __name__ == "__main__":
    sys.exit(main())
