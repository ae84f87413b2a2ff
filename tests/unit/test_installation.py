"""The installation that is meant: found and described without importing it, or refused with a remedy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ddtree_patcher import installation as installations
from ddtree_patcher import interpreter as interpreters
from ddtree_patcher.errors import EnvironmentRefused, UsageError
from ddtree_patcher.installation import Installation, find
from ddtree_patcher.records import row_for

Make = Callable[..., Path]


def install(folder: Path, *, version: str = "1.2", direct_url: object = None, installer: str = "pip") -> Path:
    """A package ``toy`` in a folder, with its dist-info."""
    (folder / "toy").mkdir(parents=True, exist_ok=True)
    (folder / "toy/__init__.py").write_text("raise SystemExit('it was imported')\n")
    info = folder / f"toy-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: toy\nVersion: {version}\n\nVersion: 9 is in the text\n"
    )
    (info / "RECORD").write_text(row_for("toy/__init__.py", (folder / "toy/__init__.py").read_bytes()) + "\n")
    if installer:
        (info / "INSTALLER").write_text(f"{installer}\n")
    if direct_url is not None:
        (info / "direct_url.json").write_text(json.dumps(direct_url))
    return folder


def found(folder: Path) -> Installation:
    return find("toy", "toy", root=str(folder))


def reasons(installation: Installation, **allowed: bool) -> list[str]:
    options = {"allow_editable": False, "break_system": False, **allowed}
    return [error.summary for error in installations.refusals(installation, **options)]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder


class TestByRoot:
    def test_the_folder_that_holds_it_or_itself(self, tmp_path: Path) -> None:
        install(tmp_path)
        for given in (tmp_path, tmp_path / "toy"):
            there = found(given)
            assert (there.folder, there.root, there.version) == (tmp_path.resolve(), tmp_path.resolve() / "toy", "1.2")
            assert there.interpreter.executable == sys.executable

    def test_through_a_symbolic_link(self, tmp_path: Path) -> None:
        install(tmp_path / "real")
        (tmp_path / "link").symlink_to(tmp_path / "real")
        assert found(tmp_path / "link").folder == (tmp_path / "real").resolve()

    @pytest.mark.parametrize("name", ["site-packages", "dist-packages", "target"])
    def test_every_kind_of_folder(self, tmp_path: Path, name: str) -> None:
        there = found(install(tmp_path / name))
        assert (there.kind, there.installer, there.dist_info) == ("wheel", "pip", "toy-1.2.dist-info")
        assert reasons(there) == []

    def test_an_unpacked_wheel(self, tmp_path: Path) -> None:
        there = found(install(tmp_path, installer=""))
        assert (there.kind, there.installer) == ("unpacked", "") and reasons(there) == []

    @pytest.mark.parametrize(
        ("make", "words"),
        [
            (lambda path: None, "does not exist"),
            (lambda path: path.write_text("x"), "is not a folder"),
            (lambda path: path.mkdir(), "has no toy/__init__.py: it is empty"),
            (lambda path: (path / "other").mkdir(parents=True), "has no toy/__init__.py: it holds other"),
            (lambda path: (path / "toy").mkdir(parents=True), "has no toy/__init__.py"),
        ],
    )
    def test_refused(self, tmp_path: Path, make: Callable[[Path], object], words: str) -> None:
        make(tmp_path / "place")
        with pytest.raises(UsageError, match=words) as caught:
            found(tmp_path / "place")
        assert caught.value.remedy


class TestByPython:
    @staticmethod
    def site(environment: Path) -> Path:
        return next(environment.glob("lib/python*/site-packages"))

    def test_where_that_interpreter_would_import_it_from(self, environment: Path, tmp_path: Path) -> None:
        python = str(environment / "bin/python")
        with pytest.raises(EnvironmentRefused, match="has no toy") as caught:
            find("toy", "toy", python=python)
        assert "Install toy there" in caught.value.remedy
        site = install(self.site(environment))
        there = find("toy", "toy", python=python)
        assert there.folder == site.resolve() and there.in_interpreter
        assert there.interpreter.prefix == str(environment) and there.interpreter.managed == ""
        both = find("toy", "toy", python=python, root=str(install(tmp_path)))
        assert (both.folder, both.interpreter.prefix) == (tmp_path.resolve(), str(environment))
        assert not both.in_interpreter

    def test_a_zipped_or_namespace_package(self, environment: Path, tmp_path: Path) -> None:
        python, site = str(environment / "bin/python"), self.site(environment)
        with zipfile.ZipFile(tmp_path / "toys.zip", "w") as archive:
            archive.writestr("zipped/__init__.py", "")
        (site / "toys.pth").write_text(f"{tmp_path / 'toys.zip'}\n")
        (site / "spaced").mkdir()
        (site / "lone.py").write_text("")
        for name in ("zipped", "spaced", "lone"):
            with pytest.raises(EnvironmentRefused, match="not a package folder") as caught:
                find(name, name, python=python)
            assert "reinstall from a wheel" in caught.value.remedy

    @pytest.mark.parametrize(
        ("program", "words"),
        [("/no/such/python", "cannot be run"), ("/bin/true", "not a working Python"), ("/", "cannot be run")],
    )
    def test_what_is_no_interpreter(self, program: str, words: str) -> None:
        with pytest.raises(UsageError, match=words):
            find("toy", "toy", python=program)

    def test_the_current_folder_is_no_installation(
        self, environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "here").mkdir()
        (tmp_path / "here/__init__.py").write_text("")
        monkeypatch.chdir(tmp_path)
        with pytest.raises(EnvironmentRefused, match="has no here"):
            find("here", "here", python=str(environment / "bin/python"))


class TestMetadata:
    def test_without_dist_info(self, tmp_path: Path) -> None:
        (tmp_path / "toy").mkdir()
        (tmp_path / "toy/__init__.py").write_text("")
        there = found(tmp_path)
        assert (there.version, there.dist_info, there.record) == ("", "", None)
        (reason,) = reasons(there)
        assert "has no toy-*.dist-info" in reason

    def test_without_record(self, tmp_path: Path) -> None:
        (install(tmp_path) / "toy-1.2.dist-info/RECORD").unlink()
        (reason,) = reasons(found(tmp_path))
        assert "toy-1.2.dist-info has no RECORD" in reason

    def test_with_a_damaged_record(self, tmp_path: Path) -> None:
        (install(tmp_path) / "toy-1.2.dist-info/RECORD").write_text("what\n")
        with pytest.raises(EnvironmentRefused, match="RECORD is damaged"):
            found(tmp_path)

    def test_two_dist_infos(self, tmp_path: Path) -> None:
        install(tmp_path)
        install(tmp_path, version="1.3")
        with pytest.raises(
            EnvironmentRefused, match=r"2 dist-info folders of toy: toy-1\.2\.dist-info, toy-1\.3"
        ) as caught:
            found(tmp_path)
        assert "interrupted upgrade" in caught.value.remedy

    def test_of_another_distribution_do_not_count(self, tmp_path: Path) -> None:
        install(tmp_path)
        (tmp_path / "toy_kernel-9.dist-info").mkdir()
        assert found(tmp_path).version == "1.2"

    def test_the_version_of_a_dist_info_without_metadata_is_in_its_name(self, tmp_path: Path) -> None:
        (install(tmp_path) / "toy-1.2.dist-info/METADATA").unlink()
        assert found(tmp_path).version == "1.2"

    def test_what_record_says_of_a_file(self, tmp_path: Path) -> None:
        there = found(install(tmp_path))
        assert len(there.recorded_sha256("toy/__init__.py")) == 64
        assert there.recorded_sha256("toy/other.py") == ""
        assert replace(there, record=None).recorded_sha256("toy/__init__.py") == ""

    def test_a_direct_url_that_is_not_json(self, tmp_path: Path) -> None:
        (install(tmp_path) / "toy-1.2.dist-info/direct_url.json").write_text("{")
        with pytest.raises(EnvironmentRefused, match="is not JSON"):
            found(tmp_path)


class TestOwnership:
    @pytest.mark.parametrize(
        ("url", "kind", "words"),
        [
            (
                {"url": "file:///src", "dir_info": {"editable": True}},
                "editable",
                "an editable installation of file:///src",
            ),
            ({"url": "https://git/x", "vcs_info": {"vcs": "git"}}, "vcs", "a VCS installation of https://git/x"),
        ],
    )
    def test_somebodys_source_tree(self, tmp_path: Path, url: object, kind: str, words: str) -> None:
        there = found(install(tmp_path, direct_url=url))
        assert there.kind == kind
        (reason,) = reasons(there)
        assert words in reason
        assert reasons(there, allow_editable=True) == []
        (error,) = installations.refusals(there, allow_editable=False, break_system=True)
        assert "--allow-editable" in error.remedy

    @pytest.mark.parametrize(
        "url",
        [
            {"url": "file:///x.whl", "archive_info": {}},
            {"url": "file:///src", "dir_info": {}},
            {"url": "file:///src", "dir_info": {"editable": False}},
            [],
        ],
    )
    def test_a_wheel_or_a_built_folder_is_ours(self, tmp_path: Path, url: object) -> None:
        there = found(install(tmp_path, direct_url=url))
        assert there.kind == "wheel" and reasons(there) == []

    def test_pep_668(self, tmp_path: Path) -> None:
        there = found(install(tmp_path))
        managed = replace(there.interpreter, managed="[externally-managed]\nError=No.", managed_sites=(str(tmp_path),))
        inside = replace(there, interpreter=managed)
        (reason,) = reasons(inside)
        assert "externally managed" in reason
        assert reasons(inside, break_system=True) == []
        outside = replace(there, interpreter=replace(managed, managed_sites=("/elsewhere",)))
        assert reasons(outside) == []
        (error,) = installations.refusals(inside, allow_editable=True, break_system=False)
        assert "--break-system-packages" in error.remedy and error.detail == managed.managed

    @pytest.mark.parametrize(("virtual", "managed"), [(False, "marked"), (True, "")])
    def test_the_marker_does_not_bind_virtual_environments(self, tmp_path: Path, virtual: bool, managed: str) -> None:
        (tmp_path / "EXTERNALLY-MANAGED").write_text("marked\n")
        prefix = "/venv" if virtual else "/usr"
        facts = {"prefix": prefix, "base_prefix": "/usr", "stdlib": str(tmp_path), "sites": [f"{prefix}/lib/site"]}
        assert interpreters.managed(facts) == managed
        assert interpreters.managed_sites(facts) == (() if virtual else ("/usr/lib/site",))

    def test_every_reason_is_told(self, tmp_path: Path) -> None:
        there = found(install(tmp_path, direct_url={"vcs_info": {}}))
        broken = replace(
            there,
            record=None,
            interpreter=replace(there.interpreter, managed="x", managed_sites=(os.path.realpath(tmp_path),)),
        )
        assert len(reasons(broken)) == 3


def test_described_as_json_shows_it(tmp_path: Path) -> None:
    facts = found(install(tmp_path)).describe()
    assert facts["version"] == "1.2" and facts["root"] == str(tmp_path.resolve() / "toy") and facts["kind"] == "wheel"
    assert json.loads(json.dumps(facts)) == facts
