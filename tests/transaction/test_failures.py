"""The file system says no: everything back, a message with a remedy, exit code 6."""

from __future__ import annotations

import builtins
import errno
import os
from collections.abc import Callable

import pytest

from ddtree_patcher.errors import EnvironmentRefused, PatchError
from ddtree_patcher.model import ExitCode

from .world import CHANGED, World

_OPEN = os.open
CALLS = ["replace", "unlink", "mkdir", "open", "fsync", "fchmod", "utime"]


def fail_once(real: Callable[..., object], call: int, error: int, seen: list[int]) -> Callable[..., object]:
    """The function, but that its ``call``-th call (from 1) fails. ``seen`` grows by one a call."""

    def run(*args: object, **options: object) -> object:
        if len(args) > 1 and real is _OPEN and not int(args[1]) & os.O_CREAT:  # type: ignore[call-overload]
            return real(*args, **options)
        seen.append(len(seen) + 1)
        if len(seen) == call:
            raise OSError(error, os.strerror(error), str(args[0]))
        return real(*args, **options)

    return run


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EACCES], ids=errno.errorcode.get)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("command", ["apply", "revert"])
def test_any_call_that_fails_once(world: World, command: str, name: str, error: int) -> None:
    """Either nothing was done, or all of it: where only the cleaning up failed."""
    if command == "revert":
        world.apply()
    before, failures = world.footprint(), 0
    for call in range(1, 100):
        seen: list[int] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, name, fail_once(getattr(os, name), call, error, seen))
            try:
                report = world.revert() if command == "revert" else world.apply()
                caught = None
            except EnvironmentRefused as refused:
                caught = refused
        if caught is not None:
            failures += 1
            assert caught.exit_code is ExitCode.ENVIRONMENT_REFUSED and caught.remedy
            assert os.strerror(error) in caught.summary
            assert world.footprint() == before, f"{name} number {call}"
            continue
        assert report.exit_code is ExitCode.OK
        assert world.status() == ("clean" if command == "revert" else "applied"), f"{name} number {call}"
        if len(seen) < call:
            break
        world.apply() if command == "revert" else world.revert()
        before = world.footprint()
    assert failures or name in ("unlink", "mkdir", "utime")


def test_the_state_folder_cannot_be_written(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before, real = world.footprint(), builtins.open

    def refuse(path: object, mode: str = "r", *args: object, **options: object) -> object:
        if ".ddtree-patch" in str(path) and "w" in mode:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return real(path, mode, *args, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(builtins, "open", refuse)
    with pytest.raises(EnvironmentRefused, match=r"state folder .* is not writable") as caught:
        world.apply()
    assert "--state-dir" in caught.value.remedy
    monkeypatch.undo()
    world.recover()
    assert world.footprint() == before


def test_a_disk_that_stays_full_leaves_a_journal_and_the_next_run_recovers(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, real, full = world.contents(), os.open, False

    def opened(path: object, flags: int, *args: object, **options: object) -> int:
        if full and flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return real(path, flags, *args, **options)  # type: ignore[arg-type]

    def replaced(source: object, target: object, real: Callable[..., None] = os.replace) -> None:
        nonlocal full
        real(source, target)
        if str(target).endswith(CHANGED[0]):
            full = True
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(os, "replace", replaced)
    with pytest.raises(PatchError) as caught:
        world.apply()
    assert "was put back" not in caught.value.remedy.lower().replace("everything was put back", "was put back")
    monkeypatch.undo()
    assert world.status() == "interrupted"
    world.recover()
    assert world.contents() == before
    assert world.status() == "clean"


def test_an_unwritable_tree(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before, real = world.footprint(), os.open

    def opened(path: object, flags: int, *args: object, **options: object) -> int:
        if flags & os.O_CREAT and "/tiny/" in str(path):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path, flags, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", opened)
    with pytest.raises(EnvironmentRefused, match="cannot be written: Permission denied") as caught:
        world.apply()
    assert "Everything was put back" in caught.value.remedy
    assert world.footprint() == before
