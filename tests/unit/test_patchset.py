"""Patchsets: found by ID, path or entry point; loaded, or described without running any of their code."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

import pytest

from ddtree_patcher import patchset, resources
from ddtree_patcher.codemods import AddFile
from ddtree_patcher.errors import PatchsetError, UsageError
from ddtree_patcher.model import ExitCode
from ddtree_patcher.patchset import Contract, Patchset, Precondition, Step, Variant
from ddtree_patcher.shape import HasFile

GOOD = """\
from ddtree_patcher.patchset import Patchset, Step, Variant
from .parts import NAME

PATCHSET = Patchset(
    id="mine",
    version="3",
    summary="",
    distribution="some-dist",
    package="pkg",
    supports="",
    steps=(Step(NAME, "", "", (Variant("v"),)),),
)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "__init__.py").write_text(GOOD)
    (folder / "parts.py").write_text("NAME = 'one'\n")
    return folder


class TestLoad:
    def test_by_path(self, folder: Path) -> None:
        loaded = patchset.load(str(folder))
        assert (loaded.patchset.id, loaded.folder) == ("mine", folder)
        assert (loaded.identity.id, loaded.identity.version) == ("mine", "3")
        assert loaded.identity.digest == patchset.digest(folder)

    def test_by_path_relative_to_the_current_folder(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(folder.parent)
        assert patchset.load("mine").folder == folder
        assert patchset.load("./mine").folder == folder

    def test_by_id(self) -> None:
        loaded = patchset.load("ddtree")
        assert loaded.folder == resources.folder("patchsets") / "ddtree"
        assert [step.id for step in loaded.patchset.steps][:2] == ["enum", "flags"]

    def test_by_entry_point(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        point = importlib.metadata.EntryPoint("theirs", "mine", patchset.ENTRY_POINTS)
        monkeypatch.setattr(
            importlib.metadata, "entry_points", lambda *, group: [point] if group == patchset.ENTRY_POINTS else []
        )
        monkeypatch.syspath_prepend(folder.parent)
        assert patchset.load("theirs").patchset.id == "mine"
        assert "mine" not in sys.modules

    def test_an_entry_point_that_is_no_package(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "lone_module.py").write_text("")
        points = [importlib.metadata.EntryPoint("theirs", name, patchset.ENTRY_POINTS) for name in ["lone_module"]]
        monkeypatch.setattr(importlib.metadata, "entry_points", lambda *, group: points)
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(UsageError, match="theirs = lone_module is not a package"):
            patchset.load("theirs")

    def test_again_after_it_changed(self, folder: Path) -> None:
        patchset.load(str(folder))
        (folder / "parts.py").write_text("NAME = 'another'\n")
        assert [step.id for step in patchset.load(str(folder)).patchset.steps] == ["another"]

    def test_two_of_the_same_name(self, folder: Path, tmp_path: Path) -> None:
        other = tmp_path / "elsewhere" / "mine"
        other.mkdir(parents=True)
        (other / "__init__.py").write_text(GOOD)
        (other / "parts.py").write_text("NAME = 'two'\n")
        assert [patchset.load(str(item)).patchset.steps[0].id for item in (folder, other)] == ["one", "two"]


class TestNotLoaded:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "defines no PATCHSET"),
            ("PATCHSET = 1\n", "defines no PATCHSET"),
            ("def (\n", "cannot be loaded: SyntaxError"),
            ("raise RuntimeError('no')\n", "cannot be loaded: RuntimeError: no"),
            ("import not_a_module_at_all\n", "cannot be loaded: ModuleNotFoundError"),
            ("raise SystemExit(3)\n", "cannot be loaded: SystemExit"),
            (GOOD.replace("import NAME", "import GONE"), "cannot be loaded: ImportError"),
            (GOOD.replace('id="mine",', ""), "cannot be loaded: TypeError"),
            (GOOD.replace('(Variant("v"),)', '(Variant("v"),), requires=("ghost",)'), "requires 'ghost'"),
            (GOOD.replace('(Variant("v"),)', '(Variant("v"),), requires=("one",)'), "circle: one -> one"),
        ],
    )
    def test_broken(self, folder: Path, text: str, words: str) -> None:
        (folder / "__init__.py").write_text(text)
        with pytest.raises(PatchsetError, match=words) as caught:
            patchset.load(str(folder))
        assert caught.value.exit_code is ExitCode.USAGE and caught.value.remedy

    def test_no_such_name(self) -> None:
        with pytest.raises(UsageError, match="there is no patchset 'ghost'") as caught:
            patchset.load("ghost")
        assert "ddtree" in caught.value.remedy

    def test_a_folder_that_is_none(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="not a patchset folder"):
            patchset.load(str(tmp_path))


class TestStamp:
    """A file that says which patchset it is of: the digest is over its template, so that there is no circle."""

    @pytest.fixture
    def stamping(self, folder: Path) -> Path:
        text = "ID = '@PATCHSET_ID@'; VERSION = '@PATCHSET_VERSION@'; DIGEST = '@PATCHSET_DIGEST@'".replace("'", '"')
        (folder / "stamp.txt").write_text("\n".join(text.split("; ")) + "\n")
        program = GOOD.replace('Variant("v")', 'Variant("v", edits=(FILE,)), Variant("w", edits=(FILE, PLAIN))')
        (folder / "__init__.py").write_text(
            "from pathlib import Path\n"
            "from ddtree_patcher.codemods import AddFile, AddStampedFile\n"
            "FILE = AddStampedFile('pkg/stamp.py', (Path(__file__).parent / 'stamp.txt').read_bytes())\n"
            "PLAIN = AddFile('pkg/plain.py', FILE.content)\n" + program
        )
        return folder

    def test_every_variant_says_the_identity(self, stamping: Path) -> None:
        loaded = patchset.load(str(stamping))
        expected = f'ID = "mine"\nVERSION = "3"\nDIGEST = "{loaded.identity.digest}"\n'.encode()
        (step,) = loaded.patchset.steps
        first, (second, plain) = (variant.edits for variant in step.variants)
        assert [edit.content for edit in first if isinstance(edit, AddFile)] == [expected]
        assert isinstance(second, AddFile) and second.content == expected
        assert isinstance(plain, AddFile) and b"@PATCHSET_DIGEST@" in plain.content  # nobody asked for it there

    def test_the_same_files_give_the_same_stamp_and_others_another(self, stamping: Path) -> None:
        first, again = patchset.load(str(stamping)), patchset.load(str(stamping))
        assert first.patchset.steps == again.patchset.steps
        (stamping / "parts.py").write_text("NAME = 'one'  # edited\n")
        assert patchset.load(str(stamping)).patchset.steps != first.patchset.steps

    def test_a_template_without_a_placeholder_is_refused(self, stamping: Path) -> None:
        (stamping / "stamp.txt").write_text("ID = 1\n")
        with pytest.raises(PatchsetError, match=r"pkg/stamp\.py is stamped"):
            patchset.load(str(stamping))


class TestDescribe:
    def test_reads_the_literals_without_running_anything(self, folder: Path) -> None:
        (folder / "__init__.py").write_text("raise SystemExit('it ran')\n" + GOOD)
        described = patchset.describe(folder)
        assert (described.identity.id, described.identity.version) == ("mine", "3")
        assert (described.distribution, described.package) == ("some-dist", "pkg")

    @pytest.mark.parametrize("text", ["", "def (\n", "x = 1\0", GOOD.replace('"mine"', "NAME").replace('"3"', "f()")])
    def test_what_it_cannot_read_stays_empty(self, folder: Path, text: str) -> None:
        (folder / "__init__.py").write_text(text)
        identity = patchset.describe(folder).identity
        assert (identity.id, identity.version) == ("mine", "") and len(identity.digest) == 64

    def test_agrees_with_what_is_loaded(self) -> None:
        loaded = patchset.load("ddtree")
        described = patchset.describe(loaded.folder)
        assert described.identity == loaded.identity
        assert (described.distribution, described.package) == (loaded.patchset.distribution, loaded.patchset.package)


class TestDigest:
    def test_stays_with_bytecode_editors_files_times_and_places(self, folder: Path, tmp_path: Path) -> None:
        before = patchset.digest(folder)
        patchset.load(str(folder))
        (folder / "__pycache__").mkdir(exist_ok=True)
        (folder / "__pycache__" / "x.pyc").write_bytes(b"x")
        (folder / ".parts.py.swp").write_bytes(b"x")
        (folder / "parts.py").touch()
        assert patchset.digest(folder) == before
        assert patchset.digest(folder.rename(tmp_path / "moved")) == before

    @pytest.mark.parametrize("name", ["__init__.py", "parts.py", "smoke.txt", "deep/code.py"])
    def test_changes_with_any_other_file(self, folder: Path, name: str) -> None:
        before = patchset.digest(folder)
        (folder / name).parent.mkdir(exist_ok=True)
        with open(folder / name, "a") as file:
            file.write("# more\n")
        assert patchset.digest(folder) != before

    def test_changes_with_a_name(self, folder: Path) -> None:
        before = patchset.digest(folder)
        (folder / "parts.py").rename(folder / "party.py")
        assert patchset.digest(folder) != before


def built(*steps: Step, preconditions: tuple[Precondition, ...] = ()) -> Patchset:
    return Patchset("p", "1", "", "pkg", "pkg", "", steps, preconditions)


class TestPatchset:
    def test_needs_steps_with_names_of_their_own(self) -> None:
        with pytest.raises(PatchsetError, match="has no steps"):
            built()
        with pytest.raises(PatchsetError, match="two steps named a"):
            built(Step("a", "", "", ()), Step("a", "", "", ()))

    @pytest.mark.parametrize("path", ["other/f.py", "/pkg/f.py", "pkg/../f.py", "../pkg/f.py"])
    def test_stays_in_its_package(self, path: str) -> None:
        with pytest.raises(PatchsetError, match="not inside pkg/"):
            built(Step("a", "", "", (Variant("v", edits=(AddFile(path, b""),)),)))

    def test_watches_what_steps_contracts_and_preconditions_name_but_what_it_adds(self) -> None:
        step = Step(
            "a",
            "",
            "",
            (
                Variant(
                    "v", (HasFile("pkg/when.py"),), (AddFile("pkg/new.py", b""),), (Contract("pkg/called.py", "x"),)
                ),
            ),
            contract=(Contract("pkg/new.py", "y"), Contract("pkg/called2.py", "y")),
            postcondition=(HasFile("pkg/after.py"),),
        )
        made = built(step, preconditions=(Precondition(HasFile("pkg/base.py"), "", ""),))
        assert made.watched() == ("pkg/after.py", "pkg/base.py", "pkg/called.py", "pkg/called2.py", "pkg/when.py")
        assert step.added_paths() == {"pkg/new.py"}
