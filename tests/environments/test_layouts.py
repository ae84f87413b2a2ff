"""Packages that are no plain folder of files with ``__init__``, names that look alike, and other people's sources."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ddtree_patcher.model import CheckOutcome, Tier
from ddtree_patcher.operations import planning
from ddtree_patcher.operations.inspecting import status
from ddtree_patcher.operations.verifying import verify
from transaction.world import ADDED, CHANGED, MODULES, RECORD, World

from .conftest import MakePlace
from .places import Uv, ended


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.installed(tmp_path.resolve() / "world")


class TestZipped:
    """calamari #177, crossenv #77: "file not found" in a zip."""

    @pytest.fixture
    def python(self, uv: Uv, tmp_path: Path) -> Path:
        return uv.environment(tmp_path / "venv")

    def see(self, python: Path, *places: Path) -> None:
        """Let the interpreter find packages there, as easy-install.pth did."""
        (site,) = python.parent.parent.glob("lib/python*/site-packages")
        (site / "easy-install.pth").write_text("".join(f"{place}\n" for place in places))

    @pytest.mark.parametrize("name", ["tiny-1.0-py3.11.egg", "tiny.zip", "tiny-1.0-py3-none-any.whl"])
    def test_calamari_177_a_package_in_an_archive_is_refused_clearly(
        self, place: MakePlace, python: Path, tmp_path: Path, name: str
    ) -> None:
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for path, text in MODULES.items():
                archive.writestr(path, text)
            archive.writestr("EGG-INFO/PKG-INFO", "Metadata-Version: 1.0\nName: tiny\nVersion: 1.0\n")
        self.see(python, tmp_path / name)
        assert subprocess.run([python, "-c", "import tiny.alpha"], check=False).returncode == 0
        here, before = place(tmp_path, root="", python=str(python)), (tmp_path / name).read_bytes()
        works = (here.apply, here.revert, here.doctor, lambda: status(here.session(), check=True))
        for refused in map(ended, works):
            assert refused.code == 6 and name in refused.text and "Zipped" in refused.text
            assert "reinstall from a wheel" in refused.text
        named = ended(place(tmp_path, root=str(tmp_path / name)).apply)
        assert named.code == 2 and "is not a folder" in named.text
        assert (tmp_path / name).read_bytes() == before

    def test_crossenv_77_an_egg_that_is_a_folder_has_no_record(
        self, place: MakePlace, python: Path, tmp_path: Path
    ) -> None:
        egg = tmp_path / "tiny-1.0-py3.11.egg"
        for path, text in {**MODULES, "EGG-INFO/PKG-INFO": "Name: tiny\nVersion: 1.0\n"}.items():
            (egg / path).parent.mkdir(parents=True, exist_ok=True)
            (egg / path).write_text(text)
        self.see(python, egg)
        here = place(egg.resolve(), root="", python=str(python))
        before = here.footprint()
        refused = ended(here.apply)
        assert refused.code == 6 and "no tiny-*.dist-info" in refused.text and "pristine" in refused.text
        assert here.footprint() == before


class TestNamespaces:
    """90 to 114 folders of SGLang hold modules and no ``__init__``."""

    def test_a_module_in_a_folder_without_init_is_imported_by_its_path(self, world: World) -> None:
        (world.site / "tiny/sub/__init__.py").unlink()
        rows = world.read(RECORD).splitlines(keepends=True)
        kept = [row for row in rows if not row.startswith(b"tiny/sub/__init__.py,")]
        (world.site / RECORD).write_bytes(b"".join(kept))
        world.options["python"] = sys.executable
        assert not (world.site / ADDED).parent.joinpath("__init__.py").exists()
        report = world.apply(Tier.IMPORT)
        assert report.exit_code == 0, report.diagnostics
        ran = {item.id: item.detail.partition(" [")[0] for item in report.checks if item.tier is Tier.IMPORT}
        assert ran == {
            "import:tiny.alpha": "loaded from tiny/alpha.py",
            "import:tiny.made.deep.extra": f"loaded from {ADDED}",
            "import:tiny.sub.beta": "loaded from tiny/sub/beta.py",
        }
        again = verify(world.session(), Tier.IMPORT, Tier.IMPORT)
        assert {item.outcome for item in again.checks} == {CheckOutcome.PASSED}

    def test_another_copy_that_the_interpreter_would_import_is_not_taken_for_it(
        self, world: World, place: MakePlace, uv: Uv, tmp_path: Path
    ) -> None:
        """rampart #204: what is proved is the tree that was patched, not one of the same name."""
        python = uv.environment(tmp_path / "venv")
        other = place(uv.install(python))
        world.options["python"] = str(python)
        assert world.apply(Tier.IMPORT).exit_code == 0
        assert b"'old'" in other.read(CHANGED[0])
        (world.site / "tiny/alpha.py").unlink()
        assert ended(lambda: verify(world.session(), Tier.IMPORT, None)).code == 5


class TestLookalikes:
    @pytest.mark.parametrize(
        ("twin", "ours"),
        [
            ("tiny/made/deep/Extra.py", ADDED),
            ("tiny/made/deep/EXTRA.PY", ADDED),
            ("tiny/made/Deep", "tiny/made/deep"),
            ("tiny/Made", "tiny/made"),
        ],
    )
    def test_a_name_that_differs_only_in_case_from_an_added_one_is_refused(
        self, world: World, twin: str, ours: str
    ) -> None:
        (world.site / twin).parent.mkdir(parents=True, exist_ok=True)
        (world.site / twin).write_text("theirs = 1\n")
        before = world.footprint()
        planned, applied = ended(lambda: planning.plan(world.session(), planning.Selection())[0]), ended(world.apply)
        for refused in (planned, applied):
            assert refused.code == 4 and refused.codes == ["lookalike"], refused
            assert f"differs only in case from {ours}, which" in refused.diagnostics[0][1]
            assert "Move that file away" in refused.diagnostics[0][1]
        assert world.footprint() == before
        shutil.move(world.site / twin, world.base / "away")
        assert world.apply(Tier.STATIC).exit_code == 0

    def test_a_folder_that_is_there_anyway_is_nobodys_lookalike(self, world: World) -> None:
        (world.site / "Tiny").mkdir()
        (world.site / "tiny/Alpha.py").write_text("")
        (world.site / "tiny/made").mkdir()
        (world.site / "tiny/Made").mkdir()
        before = world.footprint()
        assert world.apply(Tier.STATIC).exit_code == 0 and world.apply(Tier.STATIC).exit_code == 0
        assert world.revert().exit_code == 0 and world.footprint() == before

    def test_letters_that_fold_together(self, world: World) -> None:
        """The names of a disk that does not tell case apart fold as Unicode does."""
        (world.site / "tiny/made/deep").mkdir(parents=True)
        (world.site / "tiny/made/deep/extra.py").write_text("")
        refused = ended(world.apply)  # the same name in all letters is not a lookalike: it is in the way
        assert refused.code == 4 and "lookalike" not in refused.codes


class TestEditable:
    """pip #5411, Hyperloom #205: the installation is somebody's checkout."""

    @pytest.fixture
    def checkout(self, tmp_path: Path, place: MakePlace, uv: Uv) -> World:
        """A repository with the package below ``python/``, and an environment that sees it."""
        source = tmp_path.resolve() / "repository/python"
        for path, text in MODULES.items():
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_bytes(text.encode())
        self.git(source, "init", "--quiet", "..")
        self.git(source, "add", ".")
        self.git(source, "commit", "--quiet", "--message", "all")
        python = uv.environment(tmp_path / "venv")
        (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
        info = site / "tiny-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n\n")
        (info / "RECORD").write_text("tiny.pth,,\n")
        url = {"url": source.as_uri(), "dir_info": {"editable": True}}
        (info / "direct_url.json").write_text(json.dumps(url))
        (site / "tiny.pth").write_text(f"{source}\n")
        return place(source, root="", python=str(python), allow_editable=True)

    @staticmethod
    def git(folder: Path, *arguments: str) -> str:
        settings = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "core.autocrlf=false")
        command = ["git", *settings, "-C", str(folder), *arguments]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        return subprocess.run(command, check=True, capture_output=True, encoding="utf-8", env=environment).stdout

    def test_pip_5411_is_refused_unless_allowed(self, checkout: World) -> None:
        before = checkout.footprint()
        checkout.options["allow_editable"] = False
        refused = ended(checkout.apply)
        assert refused.code == 6 and "editable" in refused.text and "--allow-editable" in refused.text
        assert checkout.footprint() == before

    def test_pip_5411_allowed_it_comes_back_as_it_was_committed(self, checkout: World) -> None:
        before = checkout.footprint()
        assert checkout.apply(Tier.STATIC, allow_drift=True).exit_code == 0
        assert sorted(self.git(checkout.site, "diff", "--name-only").split()) == [f"python/{path}" for path in CHANGED]
        assert {step.outcome for step in checkout.apply(Tier.STATIC, allow_drift=True).steps} == {"already"}
        assert checkout.revert().exit_code == 0
        assert checkout.footprint() == before and self.git(checkout.site, "status", "--porcelain") == ""

    @pytest.mark.parametrize("staged", [False, True])
    def test_hyperloom_205_is_never_mixed_with_edits_that_are_not_committed(
        self, checkout: World, staged: bool
    ) -> None:
        with open(checkout.site / CHANGED[0], "ab") as file:
            file.write(b"mine = 1\n")
        (checkout.site / "tiny/other.py").write_bytes(b"x = 2\n")  # is not to be changed: no concern of ours
        if staged:
            self.git(checkout.site, "add", ".")
        before, index = checkout.footprint(), (checkout.site.parent / ".git/index").read_bytes()
        refused = ended(lambda: checkout.apply(allow_drift=True))
        assert refused.code == 4 and refused.codes.count("uncommitted") == 1
        (said,) = [text for code, text in refused.diagnostics if code == "uncommitted"]
        assert CHANGED[0] in said and "Commit or stash" in said
        assert checkout.footprint() == before and (checkout.site.parent / ".git/index").read_bytes() == index
        self.git(checkout.site, "commit", "--quiet", "--all", "--message", "mine")
        assert checkout.apply(Tier.STATIC, allow_drift=True).exit_code == 0

    def test_a_checkout_without_git_is_patched_as_it_is(
        self, checkout: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        with open(checkout.site / CHANGED[0], "ab") as file:
            file.write(b"mine = 1\n")
        before = checkout.footprint()
        assert checkout.apply(Tier.STATIC, allow_drift=True).exit_code == 0
        assert checkout.revert().exit_code == 0 and checkout.footprint() == before
