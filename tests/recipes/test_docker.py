"""Both Dockerfiles, built: what is in each layer, what the image can do, and what makes the build fail."""

from __future__ import annotations

import os
import shutil
import stat
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from .conftest import PATCHED, SGLANG, VERSION, edit, site_of
from .dockerfile import Build, BuildFailed, Refused, Stage, files_below
from .machine import RECIPES, Machine

pytestmark = [pytest.mark.wheels, pytest.mark.slow]

FILES = sorted((RECIPES / "docker").iterdir())
ARGUMENTS = {"SGLANG": SGLANG, "TIER": "static"}
APPLY, VERIFY = " apply ", " verify "
Footprint = Mapping[str, tuple[int, int, int]]  # path -> inode, size, time of the last change of anything


def footprint(folder: Path) -> Footprint:
    found = {path.relative_to(folder).as_posix(): path.lstat() for path in files_below(folder)}
    return {name: (item.st_ino, item.st_size, item.st_ctime_ns) for name, item in found.items()}


@dataclass
class Layers:
    """What each instruction left of the environment with SGLang."""

    seen: list[tuple[str, Footprint]] = field(default_factory=list)

    def look(self, instruction: str, stage: Stage) -> None:
        environment = Path(stage.args.get("VENV", stage.root / "none"))
        self.seen.append((instruction, footprint(environment) if environment.is_dir() else {}))


@dataclass(frozen=True)
class Built:
    image: Stage
    layers: Layers

    @property
    def environment(self) -> Path:
        return Path(self.image.args["VENV"])

    def tool(self, *arguments: str) -> tuple[int, str]:
        """As ``docker run --entrypoint ddtree-patch``."""
        python = self.environment / "bin/python"
        done = self.image.run("ddtree-patch", "--python", str(python), *arguments)
        return done.returncode, done.stdout


@pytest.fixture(scope="module", params=FILES, ids=lambda path: path.name)
def built(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, machine: Machine, source: Path
) -> Built:
    base, layers = tmp_path_factory.mktemp("docker"), Layers()
    return Built(Build(source.parent, base, machine, ARGUMENTS, layers.look)(request.param), layers)


def test_no_layer_has_an_unpatched_sglang_and_none_changes_what_an_earlier_one_wrote(built: Built) -> None:
    """Of the image, which begins with the last FROM."""
    names = [name for name, _ in built.layers.seen]
    begin = max(index for index, name in enumerate(names) if name.startswith("FROM "))
    with_sglang = [seen for _, seen in built.layers.seen[begin:] if any("/sglang/" in path for path in seen)]
    assert len(with_sglang) > 4
    assert any(path.endswith("sglang/srt/speculative/ddtree_worker.py") for path in with_sglang[0])
    assert all(seen == with_sglang[0] for seen in with_sglang)
    assert VERIFY in names[-3] and [name.split()[0] for name in names[-3:]] == ["RUN", "ENTRYPOINT", "CMD"]


def test_the_image_runs_as_a_user_who_can_read_everything_and_starts_its_own_python(built: Built) -> None:
    image = built.image
    assert image.user.split(":")[0] != "0"
    assert shutil.which(image.entrypoint[0], path=image.env["PATH"]) == str(built.environment / "bin/python")
    assert image.entrypoint[1:] == ["-m", "sglang.launch_server"] and image.cmd
    for path in built.environment.rglob("*"):
        if not path.is_symlink():
            needed = 0o5 if path.is_dir() else 0o4
            assert stat.S_IMODE(path.stat().st_mode) & needed == needed, path
    assert Path(image.env["HOME"]).is_relative_to(image.root)


def test_what_makes_it_red_and_what_can_be_done_in_the_image(
    built: Built, wheel: Callable[[str], Path], other_build: Path, tmp_path: Path
) -> None:
    """One after the other: an edit in a later layer, an installation in a later layer, a build that does not fit."""
    image, environment = built.image, built.environment
    assert built.tool("status", "--check")[0] == 0
    self_contained(built, wheel, tmp_path)

    edit(environment)
    with pytest.raises(BuildFailed, match=PATCHED) as failed:
        image.again(VERIFY)
    assert failed.value.exit_code == 5
    assert built.tool("status", "--check")[0] == 3
    if not any(APPLY in command for command, _ in image.ran):
        return  # the last stage has a copy, and nothing that installs
    image.again(APPLY, SGLANG=f"--force-reinstall {SGLANG}")
    image.again(VERIFY)
    with pytest.raises(BuildFailed, match=PATCHED) as failed:
        image.again(APPLY, SGLANG=f"--force-reinstall --no-deps {other_build}")
    assert failed.value.exit_code == 4


def self_contained(built: Built, wheel: Callable[[str], Path], tmp_path: Path) -> None:
    """The environment at another path, with other times and another owner, is verified and reverted."""
    moved = tmp_path / "elsewhere"
    shutil.copytree(built.environment, moved, symlinks=True, copy_function=copied_plainly)
    if os.geteuid() == 0:
        for path in (moved, *moved.rglob("*")):
            os.chown(path, 65532, 65532, follow_symlinks=False)
    python, site = str(moved / "bin/python"), site_of(moved)
    for command in (("status", "--check"), ("verify", "--tier", "static"), ("revert",)):
        done = built.image.run("ddtree-patch", "--python", python, *command)
        assert done.returncode == 0, done.stdout
    assert done.stdout.split("revert: ")[1].startswith("clean")
    with zipfile.ZipFile(wheel(VERSION)) as archive:
        shipped = {
            name: archive.read(name) for name in archive.namelist() if not name.endswith((".dist-info/RECORD", "/"))
        }
    assert [name for name, data in shipped.items() if (site / name).read_bytes() != data] == []
    assert not (site / "sglang/srt/speculative/ddtree_worker.py").exists()
    assert built.tool("status", "--check")[0] == 0  # the original is as it was


def copied_plainly(old: str, new: str) -> None:
    """Content and mode; the time is that of the copying, as with some builders."""
    if os.path.islink(old):
        os.symlink(os.readlink(old), new)
    else:
        shutil.copy(old, new)


class TestTheBuilder:
    """The builder of these tests refuses what it would not carry out, and what Docker would not."""

    @pytest.mark.parametrize(
        ("lines", "says"),
        [
            ("FROM python:3.12\nSHELL [\"bash\"]", "SHELL is not understood"),
            ("FROM python:3.12\nADD a b", "ADD is not understood"),
            ("FROM alpine:3", "only an image of Python"),
            ("WORKDIR /src\nFROM python:3.12", "before FROM"),
            ("ARG A=1\nFROM python:3.12\nRUN echo ${A}", "A is not declared in this stage"),
            ("FROM python:3.12\nARG A", "ARG A has no value"),
            ("FROM python:3.12\nRUN echo ${A:-1}", "is not understood"),
            ("FROM python:3.12\nRUN touch /etc/x", "an absolute path"),
            ("FROM python:3.12\nRUN --mount=type=cache,target=/x true", "only a command of the shell"),
            ("FROM python:3.12\nUSER app", "numbers only"),
            ("FROM python:3.12\nCOPY nothing /x", "it is not there"),
            ("FROM python:3.12\nCOPY --link a /x", "only --from and --chown"),
        ],
    )  # fmt: skip
    def test_refusals(self, tmp_path: Path, machine: Machine, lines: str, says: str) -> None:
        file = tmp_path / "Dockerfile"
        file.write_text(f"{lines}\n")
        with pytest.raises(Refused, match=says):
            Build(tmp_path, tmp_path / "scratch", machine)(file)

    def test_stages_share_nothing_but_what_is_copied(self, tmp_path: Path, machine: Machine) -> None:
        file = tmp_path / "Dockerfile"
        file.write_text(
            "ARG PLACE=/opt/place\nFROM python:3.12 AS one\nARG PLACE\nWORKDIR ${PLACE}\nRUN touch a b && pwd > here\n"
            "FROM python:3.12\nARG PLACE\nCOPY --from=one ${PLACE}/a ${PLACE}/here /kept/\nWORKDIR /kept\nRUN false\n"
        )
        with pytest.raises(BuildFailed) as failed:
            Build(tmp_path, tmp_path / "scratch", machine)(file)
        assert failed.value.exit_code == 1
        root = tmp_path / "scratch/root"
        assert sorted(path.name for path in (root / "kept").iterdir()) == ["a", "here"]
        assert (root / "kept/here").read_text() == f"{root}/opt/place\n" and not (root / "opt").exists()
