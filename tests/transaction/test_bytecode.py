"""Cached bytecode: a fresh interpreter runs the code that is on disk, after apply and after revert.

A cache is trusted by its source's modification second and size (cpython #121376), or, as PEP 552 allows, not checked.
"""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from ddtree_patcher import bytecode
from ddtree_patcher.model import ExitCode

from .world import World

MODES = list(py_compile.PycInvalidationMode)


def value(world: World, *options: str) -> str:
    """``tiny.alpha.value`` in a fresh interpreter that neither writes caches nor checks those that need no check."""
    program = "import tiny.alpha; print(tiny.alpha.value)"
    command = [sys.executable, "-B", "-S", "-E", *options, "-c", program]
    return subprocess.run(command, cwd=world.site, check=True, capture_output=True, text=True).stdout.strip()


def compiled(world: World, mode: py_compile.PycInvalidationMode) -> Path:
    made = py_compile.compile(str(world.site / "tiny/alpha.py"), invalidation_mode=mode, doraise=True)
    return Path(made)


def freeze(path: Path) -> None:
    """Give a file the time that every file of this world has: the second of the old one."""
    os.utime(path, ns=(1_600_000_000_000_000_000, 1_600_000_000_000_000_000))


@pytest.mark.parametrize("mode", MODES, ids=lambda item: item.name.lower())
def test_the_code_on_disk_runs(world: World, mode: py_compile.PycInvalidationMode) -> None:
    freeze(world.site / "tiny/alpha.py")
    compiled(world, mode)
    before = world.footprint()
    assert value(world) == "old"
    assert world.apply().exit_code is ExitCode.OK
    assert value(world) == "new"
    compiled(world, mode)
    assert value(world) == "new"
    assert world.revert().exit_code is ExitCode.OK
    assert value(world) == "old"
    assert world.footprint() == before


def test_a_cache_of_the_same_second_and_size_is_not_believed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The patched source has the size of the old one and is written within the same second."""
    source = world.site / "tiny/alpha.py"
    status = source.stat()
    monkeypatch.setattr("ddtree_patcher.transaction.time.time_ns", lambda: status.st_mtime_ns + 5)
    compiled(world, py_compile.PycInvalidationMode.TIMESTAMP)
    world.apply()
    assert source.stat().st_size == status.st_size
    assert source.stat().st_mtime_ns // 10**9 != status.st_mtime_ns // 10**9
    assert value(world) == "new"
    assert not (source.parent / "__pycache__").is_dir() or not list((source.parent / "__pycache__").iterdir())


def test_caches_of_every_interpreter_and_level_are_set_aside_and_come_back(world: World) -> None:
    folder = world.site / "tiny/__pycache__"
    folder.mkdir()
    names = ["alpha.cpython-310.pyc", "alpha.cpython-312.opt-1.pyc", "alpha.pypy310.opt-2.pyc"]
    others = ["alphabet.cpython-311.pyc", "other.cpython-311.pyc", "alpha.txt"]
    for name in [*names, *others]:
        (folder / name).write_bytes(name.encode())
    (folder / names[0]).chmod(0o600)
    before = world.footprint()
    world.apply()
    assert sorted(item.name for item in folder.iterdir()) == sorted(others)
    world.revert()
    assert {name: item[0] for name, item in world.footprint().items()} == {
        name: item[0] for name, item in before.items()
    }
    assert world.footprint() == before


def test_caches_of_the_patched_code_go_with_it(world: World) -> None:
    before = world.footprint()
    world.apply()
    for path in ("tiny/alpha.py", "tiny/made/deep/extra.py"):
        py_compile.compile(str(world.site / path), doraise=True)
    world.revert()
    after = world.footprint()
    assert set(after) - set(before) <= {"tiny/__pycache__/"}
    assert {name: item for name, item in after.items() if name in before} == before


class TestCachesOf:
    def test_only_of_python_sources(self, tmp_path: Path) -> None:
        assert bytecode.caches_of(tmp_path, "a/RECORD") == ()
        assert bytecode.caches_of(tmp_path, "a/missing.py") == ()

    def test_the_source_of_a_cache(self) -> None:
        assert bytecode.source_of("a/b/__pycache__/c.cpython-311.opt-1.pyc") == "a/b/c.py"


@pytest.mark.parametrize(
    ("now", "before", "later"),
    [(10, 5, 1_000_000_005), (1_500_000_000, 999_999_999, 1_500_000_000), (1, 2_000_000_000, 1)],
)
def test_never_in_the_same_second(now: int, before: int, later: int) -> None:
    assert bytecode.later_than(now, before) == later
