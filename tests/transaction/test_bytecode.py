"""Cached bytecode: a fresh interpreter runs the code that is on disk, after apply and after revert.

A cache is trusted by its source's modification second and size (cpython #121376), or, as PEP 552 allows, not checked.
"""

from __future__ import annotations

import os
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from ddtree_patcher import bytecode
from ddtree_patcher.errors import EnvironmentRefused
from ddtree_patcher.model import CheckOutcome, CheckResult, ExitCode, Severity, Tier
from ddtree_patcher.operations import applying
from small_wheel import make_wheel

from .world import MODULES, World

MODES = list(py_compile.PycInvalidationMode)


LEVELS = {0: (), 1: ("-O",), 2: ("-OO",)}


@cache
def interpreters() -> tuple[str, ...]:
    """Every supported Python that is installed here, on the path or beside our own, one of each version."""
    beside = [str(item) for item in Path(sys.base_prefix).parent.glob("*/bin/python3")]
    on_path = [found for minor in range(10, 20) if (found := shutil.which(f"python3.{minor}"))]
    found = {}
    for name in (*on_path, *beside, sys.executable):
        command = [name, "-S", "-E", "-c", "import sys; print(sys.implementation.cache_tag, *sys.version_info[:2])"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:  # a name on the path may be a shim that runs none
            tag, *version = done.stdout.split()
            found |= {tag: name} if tuple(map(int, version)) >= (3, 10) else {}
    return tuple(found.values())


def value(world: World, *options: str, python: str = sys.executable, **variables: str) -> str:
    """``tiny.alpha.value`` in a fresh interpreter: without caches of its own and without variables, unless told to."""
    program = "import tiny.alpha; print(tiny.alpha.value)"
    command = [python, "-S", *(options or ("-B", "-E")), "-c", program]
    done = subprocess.run(
        command,
        cwd=world.site,
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **variables},
    )
    return done.stdout.strip()


def values(world: World, pythons: Sequence[str] = (sys.executable,), **variables: str) -> set[str]:
    """What fresh interpreters of every kind say: at each level, that may write caches or not."""
    return {
        value(world, *level, kind, python=python, **variables)
        for python in pythons
        for level in LEVELS.values()
        for kind in ("-B", "-q")
    }


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


@pytest.mark.parametrize("mode", MODES, ids=lambda item: item.name.lower())
def test_every_interpreter_at_every_level_runs_the_code_on_disk(
    world: World, mode: py_compile.PycInvalidationMode
) -> None:
    """vercel #16504, rules_py #873, distlib #212: bytecode that is never checked hid the edit for ever."""

    def compile_all() -> None:
        program = (
            "import py_compile, sys\nmode = py_compile.PycInvalidationMode[sys.argv[2]]\nfor level in (0, 1, 2):\n"
            "    py_compile.compile(sys.argv[1], invalidation_mode=mode, optimize=level, doraise=True)"
        )
        for python in interpreters():
            command = [python, "-S", "-E", "-c", program, str(world.site / "tiny/alpha.py"), mode.name]
            subprocess.run(command, check=True)

    compile_all()
    caches = list((world.site / "tiny/__pycache__").glob("alpha.*.pyc"))
    assert len(caches) == len(interpreters()) * len(LEVELS)
    before = world.footprint()
    assert value(world) == "old"
    world.apply()
    assert not [cache for cache in caches if cache.exists()]
    assert values(world, interpreters()) == {"new"}
    compile_all()
    assert values(world, interpreters()) == {"new"}
    world.revert()
    assert {path: item for path, item in world.footprint().items() if path in before} == before
    assert values(world, interpreters()) == {"old"}


def test_caches_elsewhere_that_python_checks_are_not_believed(world: World, tmp_path: Path) -> None:
    """PYTHONPYCACHEPREFIX: nothing there is touched, and each source has another second than the one it was."""
    prefix = str(tmp_path / "caches")
    for _ in range(2):
        assert values(world, PYTHONPYCACHEPREFIX=prefix) == {"old"}
        world.apply()
        assert values(world, PYTHONPYCACHEPREFIX=prefix) == {"new"}
        world.write_patchset(value="neu")  # of the same size
        world.apply()
        assert values(world, PYTHONPYCACHEPREFIX=prefix) == {"neu"}
        world.revert()
        world.write_patchset()
    assert values(world, PYTHONPYCACHEPREFIX=prefix) == {"old"}
    assert len(list(Path(prefix).rglob("alpha.*.pyc"))) == len(LEVELS)


def elsewhere(world: World, prefix: Path, mode: py_compile.PycInvalidationMode) -> Path:
    """The cache of ``tiny.alpha`` below a prefix."""
    cache = prefix.joinpath(*world.site.parts[1:], "tiny", f"alpha.{sys.implementation.cache_tag}.pyc")
    cache.parent.mkdir(parents=True, exist_ok=True)
    py_compile.compile(str(world.site / "tiny/alpha.py"), str(cache), invalidation_mode=mode, doraise=True)
    return cache


def test_a_cache_elsewhere_that_is_never_checked_is_refused(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = tmp_path / "caches"
    monkeypatch.setattr(sys, "pycache_prefix", str(prefix))
    cache = elsewhere(world, prefix, py_compile.PycInvalidationMode.UNCHECKED_HASH)
    before = world.footprint()
    with pytest.raises(EnvironmentRefused, match="never checks") as caught:
        world.apply()
    assert str(cache) in caught.value.summary and "Remove" in caught.value.remedy
    assert world.footprint() == before and cache.exists()

    cache.unlink()
    assert world.apply().exit_code is ExitCode.OK
    assert value(world, "-B", PYTHONPYCACHEPREFIX=str(prefix)) == "new"
    cache = elsewhere(world, prefix, py_compile.PycInvalidationMode.UNCHECKED_HASH)
    report = world.revert()
    assert report.exit_code is ExitCode.OK
    assert [item.code for item in report.diagnostics] == ["unchecked_bytecode"]
    assert str(cache) in report.diagnostics[0].summary and report.diagnostics[0].remedy
    assert value(world, "-B", PYTHONPYCACHEPREFIX=str(prefix)) == "new"  # as the warning says
    cache.unlink()
    assert value(world, "-B", PYTHONPYCACHEPREFIX=str(prefix)) == "old"


@pytest.mark.parametrize("mode", MODES[:2], ids=lambda item: item.name.lower())
def test_a_cache_elsewhere_that_is_checked_is_no_reason_to_refuse(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: py_compile.PycInvalidationMode
) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "caches"))
    elsewhere(world, tmp_path / "caches", mode)
    assert world.apply().exit_code is ExitCode.OK
    assert value(world, "-B", PYTHONPYCACHEPREFIX=str(tmp_path / "caches")) == "new"
    elsewhere(world, tmp_path / "caches", mode)
    assert world.revert().diagnostics == ()
    assert value(world, "-B", PYTHONPYCACHEPREFIX=str(tmp_path / "caches")) == "old"


@pytest.mark.parametrize("when", [0, 1_000_000_000], ids=["epoch", "one"])
def test_times_that_are_all_the_same_ostree_1469(world: World, when: int) -> None:
    """A tree whose times were all set to one constant, before and after: no time tells old bytecode from new."""

    def normalise() -> None:
        for path in world.site.rglob("*"):
            os.utime(path, ns=(when, when))

    normalise()
    for level in LEVELS:
        py_compile.compile(str(world.site / "tiny/alpha.py"), optimize=level, doraise=True)
    before = world.contents()
    world.apply()
    normalise()
    assert values(world) == {"new"}
    normalise()
    assert world.status() == "applied"
    world.revert()
    assert {path: data for path, data in world.contents().items() if path in before} == before
    assert (world.site / "tiny/alpha.py").stat().st_mtime_ns == when
    assert values(world) == {"old"}


@pytest.mark.parametrize("compiled_at_install", [True, False], ids=["compiled", "not-compiled"])
def test_installed_by_pip(tmp_path: Path, compiled_at_install: bool) -> None:
    """pip compiles what it installs, or does not, and RECORD lists the bytecode without a digest."""
    world = World(tmp_path.resolve() / "world")
    wheel = make_wheel(tmp_path, "1.0", MODULES, name="tiny")
    how = "--compile" if compiled_at_install else "--no-compile"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", how, "--target"]
    subprocess.run([*command, str(world.site), str(wheel)], check=True, capture_output=True)
    assert (world.site / "tiny/__pycache__").is_dir() is compiled_at_install
    world.write_patchset()
    before = world.footprint()
    assert world.apply().exit_code is ExitCode.OK
    assert value(world) == "new"
    world.revert()
    assert world.footprint() == before
    assert value(world) == "old"


def test_a_package_without_sources_is_refused(world: World) -> None:
    """``compileall -b`` and no sources: there is nothing to rewrite."""
    for source in (world.site / "tiny").rglob("*.py"):
        py_compile.compile(str(source), str(source.with_suffix(".pyc")), doraise=True)
        source.unlink()
    assert value(world) == "old"
    before = world.footprint()
    with pytest.raises(EnvironmentRefused, match="bytecode without its sources") as caught:
        world.apply()
    assert "wheel" in caught.value.remedy
    assert world.footprint() == before


def test_a_module_without_its_source_is_refused(world: World) -> None:
    source = world.site / "tiny/alpha.py"
    py_compile.compile(str(source), str(source.with_suffix(".pyc")), doraise=True)
    source.unlink()
    before = world.footprint()
    report = world.apply()
    assert report.exit_code is ExitCode.CONFLICT
    assert [(item.code, item.path) for item in report.diagnostics if item.severity is Severity.ERROR] == [
        ("missing", "tiny/alpha.py")
    ]
    assert world.footprint() == before


def test_bytecode_beside_the_source_is_not_what_runs(world: World) -> None:
    """A ``.pyc`` in the source's own folder is looked at only where there is no source."""
    source = world.site / "tiny/alpha.py"
    py_compile.compile(str(source), str(source.with_suffix(".pyc")), doraise=True)
    before = world.footprint()
    world.apply()
    assert values(world) == {"new"}
    world.revert()
    assert {path: item for path, item in world.footprint().items() if path in before} == before


def test_what_others_compile_while_checks_run_does_not_hinder_the_way_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that starts meanwhile writes bytecode, of the added module too: derived, so it is nobody's edit."""
    py_compile.compile(str(world.site / "tiny/alpha.py"), doraise=True)
    before = world.footprint()

    def failing(*args: object) -> Sequence[CheckResult]:
        program = "import tiny.alpha, tiny.made.deep.extra; print(tiny.alpha.value)"
        command = [sys.executable, "-S", "-E", "-c", program]
        done = subprocess.run(command, cwd=world.site, check=True, capture_output=True, text=True)
        assert done.stdout == "new\n"
        assert list((world.site / "tiny/made/deep/__pycache__").glob("extra.*.pyc"))
        return [CheckResult(Tier.IMPORT, "failing", CheckOutcome.FAILED, "on purpose")]

    monkeypatch.setattr(applying, "run_tiers", failing)
    assert world.apply(Tier.IMPORT).exit_code is ExitCode.VERIFICATION_FAILED
    after = world.footprint()
    assert {path: item for path, item in after.items() if path in before} == before
    assert all("tiny/__pycache__/__init__." in path for path in set(after) - set(before))
    assert values(world) == {"old"}


class TestCachesOf:
    def test_of_that_source_alone(self, tmp_path: Path) -> None:
        folder = tmp_path / "a/__pycache__"
        folder.mkdir(parents=True)
        mine = ["b[1].cpython-311.pyc", "b[1].cpython-312.opt-2.pyc", "b[1].pypy310.pyc"]
        for name in [*mine, "b1.cpython-311.pyc", "b[1].c.cpython-311.pyc", "b[1].cpython-311.pyc.140", "b.pyc"]:
            (folder / name).write_bytes(b"")
        assert bytecode.caches_of(tmp_path, "a/b[1].py") == tuple(f"a/__pycache__/{name}" for name in mine)

    @pytest.mark.parametrize("level", ["", "1", "2"])
    @pytest.mark.parametrize("source", ["a/b.py", "a/b.c.py", "a/opt-1.py", "a/ü b.py"])
    def test_as_python_names_them(self, source: str, level: str) -> None:
        assert bytecode.source_of(cache_from_source(source, optimization=level)) == source

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
