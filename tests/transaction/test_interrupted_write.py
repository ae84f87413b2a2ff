"""A write that is cut short leaves no half file (ruff #26480, ast-grep #2959: Ctrl-C or a full disk left an empty one).

And what a naive rename would break (the review of ruff #26580): mode bits, links, hard links.
"""

from __future__ import annotations

import errno
import os
import signal
import stat
from collections.abc import Callable

import pytest

from ddtree_patcher.errors import EnvironmentRefused, Interrupted

from .world import CHANGED, World


@pytest.mark.parametrize("how", ["full-disk", "ctrl-c"])
@pytest.mark.parametrize("command", ["apply", "revert"])
def test_no_file_is_ever_half_of_one(world: World, monkeypatch: pytest.MonkeyPatch, command: str, how: str) -> None:
    """At every sync and every rename of the run: each file is the old one or the new one, and in the end the old."""
    if command == "revert":
        world.apply()
    before = world.footprint()
    old = {path: world.read(path) for path in CHANGED}
    getattr(world, command)()
    new = {path: world.read(path) for path in CHANGED}
    (world.revert if command == "apply" else world.apply)()
    assert {path: world.read(path) for path in CHANGED} == old
    looked = 0

    def failing(real: Callable[..., object], at: int) -> Callable[..., object]:
        calls = 0

        def call(*args: object, **options: object) -> object:
            nonlocal calls, looked
            calls, looked = calls + 1, looked + 1
            for path in CHANGED:
                assert world.read(path) in (old[path], new[path])
            if calls == at and how == "full-disk":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(args[0]))
            if calls == at:
                signal.raise_signal(signal.SIGINT)
            return real(*args, **options)

        return call

    stopped = 0
    for name in ("fsync", "replace"):
        for at in (1, 2, 4, 6):
            before = world.footprint()
            with monkeypatch.context() as patch:
                patch.setattr(os, name, failing(getattr(os, name), at))
                try:
                    getattr(world, command)()
                except (EnvironmentRefused, Interrupted):
                    stopped += 1
                    assert world.footprint() == before
                    continue
            (world.revert if command == "apply" else world.apply)()  # it ended before that call, or needed it no more
    assert stopped >= 6 and looked > stopped


def test_a_rename_keeps_modes_breaks_hard_links_and_replaces_no_symbolic_link(world: World) -> None:
    other = world.base / "another-name.py"
    os.link(world.site / "tiny/alpha.py", other)
    world.apply()
    assert other.read_bytes() == b"import os\n\nvalue = 'old'\n"
    assert [stat.S_IMODE((world.site / path).stat().st_mode) for path in CHANGED] == [0o640, 0o755]
    assert (world.site / "tiny/alpha.py").stat().st_nlink == 1
    world.revert()
    other.write_bytes(b"theirs\n")
    assert world.read("tiny/alpha.py") == b"import os\n\nvalue = 'old'\n"
    elsewhere = world.base / "beta.py"
    (world.site / "tiny/sub/beta.py").rename(elsewhere)
    (world.site / "tiny/sub/beta.py").symlink_to(elsewhere)
    before = world.contents()
    with pytest.raises(EnvironmentRefused, match="symbolic link"):
        world.apply()
    assert world.contents() == before and (world.site / "tiny/sub/beta.py").is_symlink()
