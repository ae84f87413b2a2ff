"""After ``apply`` and ``revert`` the running processes that may still have the old code are named (vllm #32061,
NeMo-RL #4162, kvcached #316): a worker that runs on has other code than what is on disk.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from ddtree_patcher import processes
from ddtree_patcher.model import Diagnostic, ExitCode, Report, Severity
from ddtree_patcher.processes import Environment
from ddtree_patcher.report import as_json, as_text

from .world import World

SERVE = "import {package}.alpha, time; print({package}.alpha.value, flush=True); time.sleep(600)"
START = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start() -> Iterator[START]:
    """``start(command, cwd=…)``: a process that runs until the test ends, once it has said its first line."""
    running: list[subprocess.Popen[str]] = []

    def begin(command: list[str], **options: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload]
        running.append(process)
        assert process.stdout.readline()
        return process

    yield begin
    for process in running:
        process.kill()
        process.wait()
        process.stdout.close()


def server(world: World, start: START) -> subprocess.Popen[str]:
    """A process that imported the package, and has its code for as long as it runs."""
    return start([sys.executable, "-S", "-B", "-c", SERVE.format(package="tiny")], cwd=world.site)


def running(report: Report) -> list[Diagnostic]:
    return [item for item in report.diagnostics if item.code == "running"]


def test_a_server_that_runs_on_is_named(world: World, start: START) -> None:
    process = server(world, start)
    report = world.apply()
    assert report.exit_code is ExitCode.OK
    (warning,) = running(report)
    assert warning.severity is Severity.WARNING and "Restart" in warning.remedy
    assert f"process {process.pid}: {sys.executable} -S -B -c" in warning.detail
    assert "its command names tiny" in warning.detail and "1 running process was" in warning.summary
    out = io.StringIO()
    as_text.render(report, Console(file=out))
    for shown in (as_json.render(report), out.getvalue()):
        assert f"process {process.pid}: " in shown and "Restart them" in shown
    (warning,) = running(world.revert())
    assert f"process {process.pid}: " in warning.detail


def test_one_that_was_started_afterwards_is_not(world: World, start: START) -> None:
    world.apply()
    server(world, start)
    assert running(world.apply()) == []  # nothing was written
    environment = Environment("tiny", world.site, "")
    changed = (world.site / "tiny/alpha.py").stat().st_ctime_ns
    assert processes.older_than(changed, environment) == ()
    assert len(processes.older_than(time.time_ns() + 10**9, environment)) == 1


def test_nothing_written_names_nobody(world: World, start: START) -> None:
    world.apply()
    server(world, start)
    assert running(world.apply()) == []
    world.revert()
    assert running(world.revert()) == []


def test_who_has_a_native_library_of_the_environment_is_named(world: World, start: START) -> None:
    """As every process has that imported a torch which is installed there, whatever it calls itself."""
    library = world.site / "vendor/native.so"
    library.parent.mkdir()
    library.write_bytes(b"\0" * 8192)
    program = "import mmap, time; m = mmap.mmap(0, 0, prot=mmap.PROT_READ); print('up', flush=True); time.sleep(600)"
    with library.open("rb") as file:
        process = start([sys.executable, "-S", "-c", program], cwd="/", stdin=file)
    (warning,) = running(world.apply())
    assert f"process {process.pid}: " in warning.detail and "has vendor/native.so loaded" in warning.detail


@pytest.mark.parametrize("way", ["argument", "folder", "path", "interpreter"])
def test_who_names_the_package_and_belongs_to_the_environment(tmp_path: Path, start: START, way: str) -> None:
    """By what it was given, where it works, what its path is, or the interpreter that it runs."""
    prefix = tmp_path.resolve() / "venv"
    folder = prefix / "lib/python3/site-packages"
    folder.mkdir(parents=True)
    (prefix / "bin").mkdir()
    (prefix / "pyvenv.cfg").write_text(f"home = {os.path.dirname(os.path.realpath(sys.executable))}\n")
    (prefix / "bin/python").symlink_to(os.path.realpath(sys.executable))
    program = "import sys, time; print('up', flush=True); time.sleep(600)"
    python = str(prefix / "bin/python") if way == "interpreter" else sys.executable
    variables: Mapping[str, str] = {**os.environ, "PYTHONPATH": str(folder) if way == "path" else ""}
    given = [str(folder / "x")] if way == "argument" else []
    where = folder if way == "folder" else "/"
    process = start([python, "-c", program, "-m", "sglang.launch_server", *given], cwd=where, env=variables)
    other = start([sys.executable, "-c", program, "-m", "sglang.launch_server"], cwd="/")
    environment = Environment("sglang", folder, str(prefix))
    found = processes.older_than(time.time_ns() + 10**9, environment)
    assert [item.pid for item in found] == [process.pid]
    assert other.pid not in [item.pid for item in found]


@pytest.mark.parametrize("words", [["-m", "sglangish"], ["-m", "my_sglang"], ["x.py"]], ids=" ".join)
def test_who_names_another_package_is_not(tmp_path: Path, start: START, words: list[str]) -> None:
    program = "import time; print('up', flush=True); time.sleep(600)"
    start([sys.executable, "-c", program, *words], cwd=tmp_path)
    assert processes.older_than(time.time_ns() + 10**9, Environment("sglang", tmp_path.resolve(), "")) == ()


def test_nothing_secret_of_a_command_is_shown(world: World, start: START) -> None:
    """Reports go into the logs of CI."""
    program = "import time; print('up', flush=True); time.sleep(600)"
    secrets = ["--api-key", "s3cret", "--admin-api-key=s3cret", "--HF_TOKEN", "s3cret"]
    start([sys.executable, "-c", program, "tiny", *secrets, "--port", "1\n2"], cwd=world.site)
    (warning,) = running(world.apply())
    assert "s3cret" not in warning.detail and "\n" not in warning.detail
    assert processes._shown(["a", "--api-key", "x", "--key=y", "b"]) == "a --api-key '…' '--key=…' b"


def test_another_run_of_this_tool_is_not(world: World, start: START) -> None:
    program = "import time; print('up', flush=True); time.sleep(600)"
    script = world.base / "ddtree-patch"
    script.write_text(program)
    start([sys.executable, str(script), "--root", "tiny"], cwd=world.site)
    assert running(world.apply()) == []


def test_a_process_that_cannot_be_looked_at_is_passed_over(
    world: World, start: START, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended meanwhile, or is another user's: no reason to fail, and no reason to miss the others."""
    hidden, seen = server(world, start), server(world, start)
    real = psutil.Process.cmdline

    def cmdline(process: psutil.Process) -> list[str]:
        if process.pid == hidden.pid:
            raise psutil.AccessDenied(process.pid)
        return real(process)

    monkeypatch.setattr(psutil.Process, "cmdline", cmdline)
    (warning,) = running(world.apply())
    assert f"process {seen.pid}:" in warning.detail and str(hidden.pid) not in warning.detail


def test_where_no_process_can_be_looked_at_nothing_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Iterator[psutil.Process]:
        raise PermissionError(13, "Permission denied", "/proc")

    monkeypatch.setattr(psutil, "process_iter", refuse)
    report = world.apply()
    assert report.exit_code is ExitCode.OK and world.status() == "applied"
    (note,) = running(report)
    assert note.severity is Severity.NOTE and "Permission denied" in note.summary


def test_of_many_the_first_are_named(world: World, start: START, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ddtree_patcher.operations.running._SHOWN", 1)
    pids = sorted(server(world, start).pid for _ in range(3))
    (warning,) = running(world.apply())
    assert warning.detail.splitlines()[1:] == ["… and 2 more"]
    assert f"process {pids[0]}:" in warning.detail and "3 running processes were" in warning.summary
