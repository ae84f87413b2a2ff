"""apply and revert as functions on trees: one undoes the other, and twice is once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from shipped import BOM, OLD, world_of

from ddtree_patcher.model import ExitCode, Tier
from transaction.world import ADDED, World

ALPHA = "tiny/alpha.py"
LINES = st.sampled_from(
    [
        *("x = 'é😀'", "", "# a comment", "def f():", "    return 1", "\f", "s = '''", "'''"),
        *("if x:", "\tpass", "y = (1,", "  2)"),
    ]
)


@dataclass(frozen=True)
class Tree:
    """What one file and its surroundings are before anything is done to them."""

    data: bytes
    mode: int
    mtime_ns: int
    content: bytes  # of the file that the patchset adds


def is_python(data: bytes) -> bool:
    try:
        compile(data, "f.py", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    above, below = (draw(st.lists(LINES, max_size=6)) for _ in range(2))
    lines = [*above, "value = 'old'", *below]
    text = newline.join(lines) if is_python("\n".join(lines).encode()) else f"value = 'old'{newline}"
    ending = draw(st.sampled_from(["", newline, newline * 3]))
    data = draw(st.sampled_from([b"", BOM])) + (text + ending).encode()
    return Tree(
        data,
        draw(st.sampled_from([0o644, 0o600, 0o755, 0o444, 0o664])),
        draw(st.sampled_from([0, 1, OLD, OLD + 999_999_999, 4_102_444_800_000_000_001])),
        draw(st.binary(max_size=40).filter(lambda data: b"\r" not in data)),
    )


def identities(world: World) -> Mapping[str, tuple[int, int, int]]:
    """Every file and folder by its number and the times of its content and of its metadata: writing changes them."""
    found = {}
    for path in world.site.rglob("*"):
        status = path.lstat()
        found[path.relative_to(world.site).as_posix()] = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
    return found


@settings(max_examples=15)
@given(trees())
def test_apply_and_revert(tree: Tree) -> None:
    with TemporaryDirectory() as folder:
        world = world_of(Path(folder) / "world", {ALPHA: tree.data})
        world.write_patchset(content=tree.content)
        (world.site / ALPHA).chmod(tree.mode)
        os.utime(world.site / ALPHA, ns=(tree.mtime_ns, tree.mtime_ns))
        before = world.footprint()

        assert world.apply().exit_code is ExitCode.OK
        applied, first, written = world.footprint(), world.contents(), identities(world)
        assert world.read(ALPHA) == tree.data.replace(b"value = 'old'", b"value = 'new'")
        assert world.read(ADDED) == tree.content
        assert applied[ALPHA][1] == tree.mode

        assert world.apply().exit_code is ExitCode.OK  # twice is once, and writes nothing
        assert identities(world) == written

        assert world.revert().exit_code is ExitCode.OK  # one undoes the other: bytes, modes, times, folders
        assert world.footprint() == before
        untouched = identities(world)
        assert world.revert().exit_code is ExitCode.OK
        assert identities(world) == untouched

        assert world.apply().exit_code is ExitCode.OK  # and it is the same function again
        assert world.contents() == first


def test_the_checks_of_a_second_application_write_nothing(tmp_path: Path) -> None:
    """patch-package #31, AReaL #93: a second run is nothing to do, also where it verifies."""
    world = world_of(tmp_path / "world", {})
    world.apply(Tier.STATIC)
    written = identities(world)
    assert world.apply(Tier.STATIC).exit_code is ExitCode.OK
    assert identities(world) == written
