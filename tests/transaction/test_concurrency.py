"""Several processes on one installation: no one sees a half, waits for the dead, or takes from the living."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from ddtree_patcher import lock
from ddtree_patcher.errors import Locked
from ddtree_patcher.model import DriftCause, ExitCode, Report, Tier
from ddtree_patcher.operations import inspecting, verifying
from ddtree_patcher.operations.verifying import verify
from powerless import drop_capabilities

from .world import ADDED, CHANGED, RECORD, World

SECONDS = float(os.environ.get("DDTREE_TEST_CONCURRENCY_SECONDS", "12"))
STATIC = ("--tier", "static")
COMMANDS = (
    ("apply", "--verify", "static"),
    ("apply", "--verify", "none"),
    ("revert",),
    ("revert",),
    ("status",),
    ("status", "--check"),
    ("verify", *STATIC),
    ("verify", *STATIC),
)
# Every way in which a command may end here, by its outcome and exit code.
ENDINGS = {
    "apply": {("ok", 0), ("locked", 7)},
    "revert": {("clean", 0), ("locked", 7)},
    "status": {("clean", 0), ("clean", 3), ("applied", 0), ("busy", 0), ("busy", 7)},
    "verify": {("ok", 0), ("clean", 5), ("locked", 7)},
}

# And where some of the processes are killed in the middle.
MORTAL = {"status": {("interrupted", 0), ("interrupted", 3)}, "verify": {("interrupted", 5)}}


def states_of(world: World) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Pristine and patched, in the bytes of every file."""
    pristine = dict(world.contents())
    assert world.apply().exit_code is ExitCode.OK
    patched = dict(world.contents())
    assert world.revert().exit_code is ExitCode.OK
    assert world.contents() == pristine
    return pristine, patched


def torn(world: World, pristine: dict[str, bytes], patched: dict[str, bytes]) -> Iterator[str]:
    """Files that are neither as they were nor as they are to be, at this moment."""
    for path in (*CHANGED, RECORD, ADDED):
        try:
            data = world.read(path)
        except FileNotFoundError:
            if path != ADDED:
                yield f"{path} is gone"
            continue
        if data not in (pristine.get(path), patched[path]):
            yield f"{path} is {data!r}"


@pytest.mark.parametrize("mortal", [(), (0, 2)], ids=["all live", "two are killed again and again"])
def test_eight_processes_at_once(world: World, mortal: tuple[int, ...]) -> None:
    """For ``DDTREE_TEST_CONCURRENCY_SECONDS`` (default: 12), or half as long where some are killed."""
    before, seconds = world.footprint(), SECONDS / (2 if mortal else 1)
    pristine, patched = states_of(world)
    shared = ("--root", str(world.site), "--patchset", str(world.patchset))
    program = str(Path(__file__).with_name("at_once.py"))
    workers = []
    for number, words in enumerate(COMMANDS):
        patience = ("--lock-timeout", str(number % 2 * 2))  # every other one waits for two seconds
        seed = str(number + 1 if number in mortal else 0)
        command = [sys.executable, program, str(seconds), seed, *shared, *patience, *words]
        workers.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    for worker in workers:
        assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
    looks, until, found = 0, time.monotonic() + seconds, []
    while time.monotonic() < until:
        found += torn(world, pristine, patched)
        looks += 1
        time.sleep(0.002)
    seen = endings(workers, mortal)
    assert found == []
    print(f"{sum(seen.values())} runs, {looks} looks in {seconds:.0f} s: {dict(seen)}")
    assert seen["apply", "ok", 0] and seen["revert", "clean", 0], seen
    assert {command for command, _, _ in seen} >= set(ENDINGS), seen
    if mortal:
        assert sum(times for (_, outcome, _), times in seen.items() if outcome == "killed") > 5, seen
    else:
        assert seen["status", "applied", 0] + seen["verify", "ok", 0], seen
    if mortal:
        world.recover()
    assert world.contents() == (patched if world.status() == "applied" else pristine)
    names = {path.name for path in world.state.iterdir()} if world.state.exists() else set()
    assert names <= {"state.json", "objects"}
    assert world.revert().exit_code is ExitCode.OK
    assert world.footprint() == before


def endings(workers: Sequence[subprocess.Popen[str]], mortal: Collection[int]) -> Counter[tuple[str, str, int]]:
    """How often each way to end was seen; none is undocumented, and none is an alarm."""
    allowed = {command: {*ways, *(MORTAL.get(command, ()) if mortal else ())} for command, ways in ENDINGS.items()}
    forbidden = {*(cause.value for cause in DriftCause), "foreign", "wiped", "missing", "error"}
    seen: Counter[tuple[str, str, int]] = Counter()
    for number, worker in enumerate(workers):
        out, _ = worker.communicate()
        assert worker.returncode == 0
        for command, outcome, code, said, codes, times in json.loads(out):
            seen[command, outcome, code] += times
            if number not in mortal:
                assert (outcome, code) in allowed[command], (command, outcome, code, said)
            assert forbidden.isdisjoint(codes), (command, outcome, codes)
            assert mortal or "interrupted" not in codes, (command, outcome, codes)
    return seen


# --- a writer in the middle --------------------------------------------------------------------------------------

_STOPS = """
import os, signal, sys
from pathlib import Path
from ddtree_patcher.cli import main

real, count = os.replace, 0

def replace(source, target):
    global count
    real(source, target)
    count += "/.ddtree-patch/" not in str(target)
    if count == int(sys.argv[1]):
        count += 1
        os.kill(os.getpid(), signal.SIGSTOP)

os.replace = replace
main(["-q", *sys.argv[2:]])
"""
Middle = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def middle(world: World) -> Iterator[Middle]:
    """``middle(command, after=1)``: a process that stands still after so many of its files are replaced."""
    started = []

    def start(command: str = "apply", after: int = 1) -> subprocess.Popen[bytes]:
        words = ["--root", str(world.site), "--patchset", str(world.patchset), command]
        options = ["--verify", "none"] if command == "apply" else []
        process = subprocess.Popen([sys.executable, "-c", _STOPS, str(after), *words, *options])
        started.append(process)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def go_on(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGCONT)
    assert process.wait() == 0


def status_of(world: World, *, check: bool = False) -> Report:
    return inspecting.status(world.session(), check=check)


@pytest.mark.parametrize("command", ["apply", "revert"])
@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_living_writer_is_no_alarm_and_never_robbed(
    world: World, middle: Middle, monkeypatch: pytest.MonkeyPatch, command: str, after: int
) -> None:
    for module in (inspecting, verifying):
        monkeypatch.setattr(module, "PATIENCE", 0.0)
    if command == "revert":
        assert world.apply().exit_code is ExitCode.OK
    process = middle(command, after)
    before = world.footprint()
    report = status_of(world)
    assert (report.outcome, report.exit_code) == ("busy", ExitCode.OK)
    assert [item.code for item in report.diagnostics] == ["busy"]
    assert f"(process {process.pid})" in report.diagnostics[0].summary
    assert status_of(world, check=True).exit_code is ExitCode.LOCKED
    for run in (world.apply, world.revert, lambda: verify(world.session(), Tier.STATIC, None), world.doctor):
        with pytest.raises(Locked, match=rf"\(process {process.pid}\) is at work") as caught:
            run()
        assert "--lock-timeout" in caught.value.remedy
    assert world.footprint() == before
    go_on(process)
    assert world.status() == ("applied" if command == "apply" else "clean")


@pytest.mark.parametrize("run", ["apply", "revert", "verify", "status"])
def test_who_is_given_time_waits_for_a_living_writer(world: World, middle: Middle, run: str) -> None:
    world.options["lock_timeout"] = 60.0
    process = middle()
    waking = threading.Timer(0.5, process.send_signal, [signal.SIGCONT])
    waking.start()
    if run == "verify":
        assert verify(world.session(), Tier.STATIC, None).exit_code is ExitCode.OK
    elif run == "status":
        assert world.status() == "applied"
    else:
        assert getattr(world, run)().exit_code is ExitCode.OK
    waking.join()
    assert process.wait() == 0


@pytest.mark.parametrize("named", ["itself", "a living stranger"])
def test_what_a_dead_writer_left_is_taken_over_with_a_word(world: World, middle: Middle, named: str) -> None:
    """Process numbers are used again: the one in the journal proves nothing, the kernel's lock does."""
    before = world.footprint()
    process = middle(after=2)
    process.kill()
    process.wait()
    dead = process.pid
    if named == "a living stranger":
        journal = world.state / "journal.json"
        dead = os.getpid()
        journal.write_text(journal.read_text().replace(f'"pid": {process.pid}', f'"pid": {dead}'))
    assert world.status() == "interrupted"
    report = world.apply()
    assert report.exit_code is ExitCode.OK
    (word,) = [item for item in report.diagnostics if item.code == "interrupted"]
    assert f"an earlier run (process {dead}) ended half way" in word.summary
    assert world.revert().exit_code is ExitCode.OK
    assert world.footprint() == before


def test_a_look_that_a_whole_run_passes_by_is_taken_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """No journal before and none after, and yet the files are of two moments."""
    real, runs = inspecting.installation_status, iter([world.apply, world.revert])

    def slow(*args: object) -> object:
        result = real(*args)  # type: ignore[arg-type]
        for run in runs:
            monkeypatch.setattr(inspecting, "installation_status", real)
            assert run().exit_code is ExitCode.OK
            monkeypatch.setattr(inspecting, "installation_status", slow)
            break
        return result

    monkeypatch.setattr(inspecting, "installation_status", slow)
    assert world.status() == "clean"
    assert list(runs) == []


def test_what_vanishes_during_a_look_is_no_error(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state was read, and the pristine bytes that it names went with a revert."""
    assert world.apply().exit_code is ExitCode.OK
    real, reverted = inspecting.installation_status, []

    def late(*args: object) -> object:
        if not reverted:
            reverted.append(world.revert().exit_code)
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(inspecting, "installation_status", late)
    assert world.status() == "clean"
    assert reverted == [ExitCode.OK]


def test_who_looks_is_in_nobodys_way(world: World) -> None:
    """A look asks for the lock for microseconds: a writer that will not wait gets it all the same."""
    folder, done = world.site / "tiny", threading.Event()

    def look() -> None:
        while not done.is_set():
            lock.is_held(folder)

    lookers = [threading.Thread(target=look) for _ in range(4)]
    for looker in lookers:
        looker.start()
    try:
        for _ in range(300):
            with lock.locked(folder):
                assert lock.owner(folder) in (os.getpid(), 0)
    finally:
        done.set()
        for looker in lookers:
            looker.join()


def test_an_owner_is_known_by_what_it_has_open_where_devices_have_two_numbers(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """btrfs, overlays: the device in /proc/locks is not the one that stat tells."""
    with lock.locked(world.site / "tiny"):
        monkeypatch.setattr(os, "major", lambda device: 0xFFF)
        assert lock.owner(world.site / "tiny") == os.getpid()
        assert lock.owner(world.site / "tiny/sub") == 0


def test_an_owner_that_cannot_be_seen_is_not_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another container, or no /proc: the lock holds all the same."""
    monkeypatch.setattr(lock, "_PROC", world.base / "no such folder")
    with lock.locked(world.site / "tiny"), pytest.raises(Locked, match="another ddtree-patch is at work on"):
        world.apply()


# --- reading needs no right to write -----------------------------------------------------------------------------


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nobody may write anything there."""
    modes = {path: path.lstat().st_mode & 0o7777 for path in (folder, *folder.rglob("*"))}
    for path in modes:
        path.chmod(modes[path] & ~0o222)
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


@pytest.mark.parametrize("condition", ["clean", "applied", "drifted", "interrupted"])
def test_status_and_verify_work_on_a_read_only_tree_and_write_nothing(
    world: World, middle: Middle, condition: str
) -> None:
    if condition in ("applied", "drifted"):
        assert world.apply().exit_code is ExitCode.OK
    if condition == "drifted":
        (world.site / CHANGED[0]).write_bytes(b"mine = 1\n")
    if condition == "interrupted":
        middle().kill()
    assert world.session().loaded  # imported before the child lets go of its rights
    with read_only(world.site):
        before = world.footprint()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                drop_capabilities()
                with pytest.raises(OSError):
                    (world.site / "probe").touch()
                report = verify(world.session(), Tier.STATIC, None)
                expected = ExitCode.OK if condition == "applied" else ExitCode.VERIFICATION_FAILED
                code = 0 if world.status() == condition and report.exit_code is expected else 2
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert world.footprint() == before


def test_looking_writes_nothing_at_any_moment(world: World) -> None:
    """By the times of the folders too: not even a file that is gone again."""
    random.seed(5)
    for step in (lambda: None, world.apply, world.revert):
        step()
        before = {path: path.lstat().st_mtime_ns for path in (world.site, *world.site.rglob("*"))}
        for look in random.sample([world.status, world.doctor, lambda: verify(world.session(), Tier.STATIC, None)], 3):
            look()
        assert {path: path.lstat().st_mtime_ns for path in (world.site, *world.site.rglob("*"))} == before
