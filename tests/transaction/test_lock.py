"""One writer at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ddtree_patcher.errors import Locked
from ddtree_patcher.lock import locked
from ddtree_patcher.model import ExitCode

from .world import World

HOLD = """
import sys
from pathlib import Path
from ddtree_patcher.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


@pytest.mark.parametrize("command", ["apply", "revert"])
def test_a_second_run_is_refused_and_writes_nothing(world: World, command: str) -> None:
    before = world.footprint()
    with (
        locked(world.site / "tiny"),
        pytest.raises(Locked, match=rf"another ddtree-patch \(process {os.getpid()}\)") as caught,
    ):
        getattr(world, command)()
    assert caught.value.exit_code is ExitCode.LOCKED and "--lock-timeout" in caught.value.remedy
    assert world.footprint() == before


def test_reading_needs_no_lock(world: World) -> None:
    with locked(world.site / "tiny"):
        assert world.status() == "clean"


def test_the_same_folder_by_another_path(world: World, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(world.site)
    with locked(tmp_path / "link" / "tiny"), pytest.raises(Locked):
        world.apply()


def test_another_process_keeps_it_until_it_dies(world: World) -> None:
    process = holder(world.site / "tiny")
    with pytest.raises(Locked):
        world.apply()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert world.apply().exit_code is ExitCode.OK


def test_it_waits_as_long_as_it_is_told(world: World) -> None:
    world.options["lock_timeout"] = 30.0
    descriptor = os.open(world.site / "tiny", os.O_RDONLY)
    with locked(world.site / "tiny"):
        waiting = threading.Thread(target=world.apply)
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
    waiting.join()
    os.close(descriptor)
    assert world.status() == "applied"


def test_it_is_free_after_a_failure(world: World) -> None:
    with pytest.raises(RuntimeError), locked(world.site):
        raise RuntimeError
    with locked(world.site):
        pass


def test_it_leaves_no_file(world: World) -> None:
    before = world.footprint()
    with locked(world.site / "tiny"):
        assert world.footprint() == before
