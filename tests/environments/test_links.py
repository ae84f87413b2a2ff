"""Packages and environments behind links: the real path is patched, and never another environment's by accident."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ddtree_patcher.errors import Locked
from ddtree_patcher.lock import locked
from ddtree_patcher.model import Tier
from ddtree_patcher.operations.inspecting import status
from transaction.world import ADDED, CHANGED, MODULES, RECORD, World

from .conftest import MakePlace
from .places import Place, Uv, ended, inodes, pip, site_of


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.installed(tmp_path.resolve() / "world")


@pytest.fixture
def installed(uv: Uv, place: MakePlace, tmp_path: Path) -> Place:
    """The package in a virtual environment, found by its interpreter alone."""
    python = uv.environment(tmp_path / "venv")
    return place(uv.install(python), root="", python=str(python))


def applies_and_comes_back(here: World) -> None:
    pristine = here.footprint()
    report = here.apply(Tier.STATIC)
    assert report.exit_code == 0, report.diagnostics
    assert here.read(CHANGED[0]) == MODULES[CHANGED[0]].replace("old", "new").encode()
    assert here.status() == "applied"
    assert here.revert().exit_code == 0 and here.footprint() == pristine


class TestOneTreeByTwoPaths:
    def test_virtualenv_2986_lib64_is_lib(self, installed: Place, place: MakePlace) -> None:
        environment = Path(str(installed.options["python"])).parent.parent
        lib64 = environment / "lib64" / installed.site.parent.name / "site-packages"
        assert lib64.samefile(installed.site) and (environment / "lib64").is_symlink()
        by_link = place(installed.site, root=str(lib64))
        assert by_link.session().installation.folder == installed.site
        assert by_link.apply(Tier.STATIC).exit_code == 0
        assert installed.status() == by_link.status() == "applied"
        assert sorted(path.name for path in installed.site.glob(".ddtree*")) == [".ddtree-patch"]
        applies = installed.apply(Tier.STATIC)
        assert {step.outcome for step in applies.steps} == {"already"}
        assert installed.revert().exit_code == 0 and by_link.status() == "clean"

    def test_cpython_137139_a_virtual_environment_behind_a_link(
        self, installed: Place, place: MakePlace, tmp_path: Path
    ) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere/link").symlink_to(tmp_path / "venv")
        by_link = place(installed.site, root="", python=str(tmp_path / "elsewhere/link/bin/python"))
        found = by_link.session().installation
        assert (found.folder, found.linked_from) == (installed.site, "")
        applies_and_comes_back(by_link)

    def test_a_folder_that_was_named_by_a_link(self, world: World, place: MakePlace, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(world.site)
        for root in (tmp_path / "link", tmp_path / "link/tiny"):
            applies_and_comes_back(place(world.site, root=str(root)))

    def test_both_paths_have_one_lock_and_one_state(self, world: World, place: MakePlace, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(world.site)
        named = tmp_path / "states"
        ways = [place(world.site, root=str(root), state_dir=str(named)) for root in (world.site, tmp_path / "link")]
        assert ways[0].session().store.folder == ways[1].session().store.folder
        with locked(ways[0].session().installation.root), pytest.raises(Locked):
            ways[1].apply()

    def test_a_platform_wheel_lies_in_platlib(self, installed: Place, tmp_path: Path) -> None:
        """SGLang from 0.5.11 on is one: where purelib and platlib differ, it is the latter that holds it."""
        python, environment = str(installed.options["python"]), tmp_path / "venv"
        (environment / "lib64").unlink()
        platlib = environment / "lib64" / installed.site.parent.name / "site-packages"
        platlib.parent.mkdir(parents=True)
        shutil.move(installed.site, platlib)
        installed.site.mkdir()
        (installed.site / "platlib.pth").write_text(f"{platlib}\n")
        assert subprocess.run([python, "-c", "import tiny"], check=False).returncode == 0
        found = installed.session().installation
        assert found.folder == platlib.resolve()
        assert installed.apply(Tier.STATIC).exit_code == 0 and installed.status() == "applied"
        assert not (installed.site / ".ddtree-patch").exists() and (platlib / ".ddtree-patch").is_dir()


class TestOutOfTheEnvironment:
    """conda #1535, #6689 and nemo-platform #1056: one physical copy that several environments see through links."""

    @pytest.fixture
    def shared(self, installed: Place, world: World) -> Place:
        """The environment's package and metadata are links to those of another installation."""
        shutil.rmtree(installed.site / "tiny")
        shutil.rmtree(installed.site / "tiny-1.0.dist-info")
        for name in ("tiny", "tiny-1.0.dist-info"):
            (installed.site / name).symlink_to(world.site / name)
        return installed

    @pytest.mark.parametrize("by", ["python", "root", "package"])
    def test_conda_1535_is_refused_with_a_remedy(self, shared: Place, place: MakePlace, world: World, by: str) -> None:
        roots = {"root": str(shared.site), "package": str(shared.site / "tiny")}
        here = shared if by == "python" else place(shared.site, root=roots[by])
        before = (world.footprint(), sorted(os.listdir(shared.site)))
        refused, looked, reverted = ended(here.apply), ended(here.doctor), ended(here.revert)
        for found in (refused, looked, reverted):
            said = found.text + " ".join(text for _, text in found.diagnostics)
            assert found.code == 6, found
            assert "leads by a symbolic link out of its environment" in said and str(world.site / "tiny") in said
            assert "--link-mode copy" in said and "--allow-shared" in said
        assert (world.footprint(), sorted(os.listdir(shared.site))) == before
        assert here.status() == "clean"  # looking is free

    def test_conda_6689_allowed_it_is_patched_where_it_lies_and_all_who_share_it_see_it(
        self, shared: Place, place: MakePlace, world: World
    ) -> None:
        pristine, here = world.footprint(), place(shared.site, root=str(shared.site), allow_shared=True)
        assert here.session().installation.folder == world.site
        assert here.apply(Tier.STATIC).exit_code == 0
        assert world.status() == here.status() == shared.status() == "applied"
        assert sorted(os.listdir(shared.site))[-2:] == ["tiny", "tiny-1.0.dist-info"]
        assert not (shared.site / ".ddtree-patch").exists()
        assert here.revert().exit_code == 0 and world.footprint() == pristine

    def test_the_command_line_has_an_option_for_it(
        self, shared: Place, place: MakePlace, world: World, run_here: Callable[..., Any]
    ) -> None:
        here = place(shared.site)
        options = ("--root", here.site, "--patchset", here.patchset)
        refused = run_here(*options, "apply", "--verify", "static").expect(6)
        assert "--allow-shared" in refused.json["diagnostics"][0]["remedy"]
        applied = run_here(*options, "--allow-shared", "apply", "--verify", "static").expect(0)
        assert applied.json["installation"]["root"] == str(world.site / "tiny") and world.status() == "applied"
        run_here(*options, "--allow-shared", "revert").expect(0)

    def test_a_whole_site_folder_that_belongs_to_another_environment(
        self, uv: Uv, place: MakePlace, tmp_path: Path
    ) -> None:
        first = site_of(uv.environment(tmp_path / "first"))
        uv.install(tmp_path / "first/bin/python")
        second = uv.environment(tmp_path / "second")
        site = site_of(second)
        shutil.rmtree(site)
        site.symlink_to(first)
        here, before = place(site, root="", python=str(second)), inodes(first)
        refused = ended(here.apply)
        assert refused.code == 6 and "out of its environment" in refused.text
        assert inodes(first) == before
        applies_and_comes_back(place(first, root="", python=str(second), allow_shared=True))

    def test_a_link_that_stays_inside_is_followed(self, installed: Place, tmp_path: Path) -> None:
        inner = tmp_path / "venv/store"
        inner.mkdir()
        for name in ("tiny", "tiny-1.0.dist-info"):
            (installed.site / name).rename(inner / name)
            (installed.site / name).symlink_to(inner / name)
        assert installed.session().installation.folder == inner.resolve()
        assert installed.apply(Tier.STATIC).exit_code == 0 and installed.status() == "applied"
        assert (installed.site / "tiny").is_symlink() and (inner / ".ddtree-patch").is_dir()

    def test_a_folder_of_another_name_is_no_package_there(self, installed: Place, tmp_path: Path) -> None:
        (installed.site / "tiny").rename(tmp_path / "venv/tiny-1.0-build7")
        (installed.site / "tiny").symlink_to(tmp_path / "venv/tiny-1.0-build7")
        for work in (installed.apply, installed.doctor):
            refused = ended(work)
            assert refused.code == 6 and "tiny-1.0-build7" in refused.text and "--link-mode copy" in refused.text

    def test_a_folder_of_the_package_that_is_a_link_is_refused_also_when_sharing_is_allowed(
        self, world: World, place: MakePlace, tmp_path: Path
    ) -> None:
        (world.site / "tiny/sub").rename(tmp_path / "sub")
        (world.site / "tiny/sub").symlink_to(tmp_path / "sub")
        before = world.footprint()
        refused = ended(place(world.site, allow_shared=True).apply)
        assert refused.code == 6 and "tiny/sub/beta.py" in refused.text
        assert world.footprint() == before


class TestConda:
    @pytest.mark.parametrize("report", ["conda_679", "conda_1535"])
    def test_hard_links_to_the_package_cache(self, place: MakePlace, tmp_path: Path, report: str) -> None:
        """The cache and a sibling environment keep bytes, mode and inode when an environment is patched, and after."""
        cache = World(tmp_path.resolve() / "pkgs/tiny-1.0-0")
        cache.install()
        sites = [tmp_path.resolve() / f"envs/{name}/lib/python3.12/site-packages" for name in ("mine", "sibling")]
        for site in sites:
            shutil.copytree(cache.site, site, copy_function=os.link)
            (site / "tiny-1.0.dist-info/INSTALLER").unlink()
            (site / "tiny-1.0.dist-info/INSTALLER").write_text("conda\n")
        before = inodes(cache.site), inodes(sites[1])
        here = place(sites[0])
        assert here.session().installation.installer == "conda"
        (said,) = [text for code, text in ended(here.doctor).diagnostics if code == "linked"]
        assert said.startswith(f"{len(MODULES)} of the files to change have other hard links")
        if report == "conda_679":
            applies_and_comes_back(here)
        else:
            assert here.apply(Tier.STATIC).exit_code == 0
            assert all((sites[0] / path).stat().st_nlink == 1 for path in (*CHANGED, ADDED, RECORD))
        assert (inodes(cache.site), inodes(sites[1])) == before


class TestWhereInstallersPutIt:
    def test_target(self, place: MakePlace, wheels: Path, tmp_path: Path) -> None:
        where = tmp_path / "target"
        pip("install", "--no-index", "--find-links", wheels, "--target", where, "tiny==1.0")
        applies_and_comes_back(place(where.resolve()))

    def test_an_upgrade_of_a_target_leaves_two_dist_infos_and_the_remedy_says_so(
        self, place: MakePlace, wheels: Path, tmp_path: Path
    ) -> None:
        where = tmp_path / "target"
        here = place(where)
        for version in ("1.0", "1.1"):
            pip("install", "--no-index", "--find-links", wheels, "--upgrade", "--target", where, f"tiny=={version}")
            if version == "1.0":
                assert here.apply(Tier.STATIC).exit_code == 0
        assert not (where / ADDED).exists()  # pip replaced the whole package folder
        refused = ended(lambda: status(here.session(), check=True))
        assert refused.code == 6 and "tiny-1.0.dist-info, tiny-1.1.dist-info" in refused.text
        assert "--target --upgrade" in refused.text and "remove the old one" in refused.text
        shutil.rmtree(where / "tiny-1.0.dist-info")
        assert here.status() == "wiped"
        assert here.apply(Tier.STATIC).exit_code == 0 and here.status() == "applied"

    def test_user(self, place: MakePlace, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """``pip install --user``: beside an interpreter that may be externally managed, in the user's own folder."""
        monkeypatch.setenv("PYTHONUSERBASE", str(tmp_path / "home"))
        monkeypatch.delenv("PYTHONNOUSERSITE", raising=False)
        python = getattr(sys, "_base_executable", sys.executable)
        options = ("--user", "--break-system-packages", "--no-index", "--find-links", wheels)
        pip("install", *options, "tiny==1.0", python=python)
        (site,) = (tmp_path / "home").glob("lib/python*/site-packages")
        here = place(site.resolve(), root="", python=python)
        found = here.session().installation
        assert found.folder == site.resolve() and not found.in_interpreter
        applies_and_comes_back(here)

    @pytest.fixture
    def system(self, world: World, tmp_path: Path) -> Callable[[str], str]:
        """``system(prefix)``: an externally managed Python whose site folder is the world's.

        With a prefix: a virtual environment there, which lets the packages of that Python through.
        """
        (tmp_path / "stdlib").mkdir()
        (tmp_path / "stdlib/EXTERNALLY-MANAGED").write_text("[externally-managed]\nError=Use apt.\n")

        def make(prefix: str = "") -> str:
            own = prefix or str(world.site)
            (tmp_path / "system.py").write_text(
                "import site, sys, sysconfig\n"
                f"stdlib, own, shared = {str(tmp_path / 'stdlib')!r}, {own!r}, {str(world.site)!r}\n"
                "sysconfig.get_path = lambda name: stdlib if name == 'stdlib' else own\n"
                "site.getsitepackages = lambda: [own, shared]\n"
                f"sys.base_prefix, sys.prefix = '/usr', {prefix!r} or '/usr'\n"
                "sys.path.insert(0, shared)\n"
                "program, sys.argv = sys.argv[2], sys.argv[2:]\n"
                "exec(program)\n"
            )
            (tmp_path / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} {tmp_path}/system.py "$@"\n')
            (tmp_path / "python3").chmod(0o755)
            return str(tmp_path / "python3")

        return make

    @pytest.mark.parametrize("virtual", [False, True], ids=["itself", "by_a_virtual_environment_that_lets_it_through"])
    def test_system_python_pep_668(
        self, place: MakePlace, world: World, system: Callable[[str], str], tmp_path: Path, virtual: bool
    ) -> None:
        """What the system's package manager has the say over is changed only when told: for a patch as for a package.

        ``--break-system-packages`` is the word for it, and ``doctor`` says so either way.
        """
        python = system(str(tmp_path / "venv") if virtual else "")
        here = place(world.site, root="", python=python)
        looked, before = ended(here.doctor), world.footprint()
        (told,) = [text for code, text in looked.diagnostics if "PEP 668" in text]
        assert looked.code == 6 and "Use apt" in told and "--break-system-packages" in told
        assert ended(here.apply).code == 6 and ended(here.revert).code == 6 and world.footprint() == before
        allowed = place(world.site, root="", python=python, break_system=True)
        looked = ended(allowed.doctor)
        assert looked.code == 0 and [text for code, text in looked.diagnostics if "PEP 668" in text]
        applies_and_comes_back(allowed)

    @pytest.mark.parametrize("virtual", [False, True], ids=["target", "own_folder_of_a_virtual_environment"])
    def test_beside_a_system_python_what_is_not_its_own_is_free(
        self, place: MakePlace, world: World, system: Callable[[str], str], tmp_path: Path, virtual: bool
    ) -> None:
        other = tmp_path / "venv/site"
        shutil.copytree(world.site, other)
        python = system(str(tmp_path / "venv") if virtual else "")
        here = place(other.resolve(), root=str(other), python=python)
        assert not [text for _, text in ended(here.doctor).diagnostics if "PEP 668" in text]
        applies_and_comes_back(here)
