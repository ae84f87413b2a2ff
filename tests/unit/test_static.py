"""The static tier: every check passes on a tree that is right, and fails on one that is wrong in its way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ddtree_patcher import records
from ddtree_patcher.codemods import AddEnumMember, AddFile, AddStampedFile
from ddtree_patcher.digest import read_from, sha256
from ddtree_patcher.installation import Installation, find
from ddtree_patcher.model import CheckOutcome, CheckResult, PatchsetIdentity, StepOutcome, StepResult, Tier
from ddtree_patcher.patchset import Contract, Patchset, Step, Variant
from ddtree_patcher.shape import Defines
from ddtree_patcher.tree import Tree
from ddtree_patcher.verification.static import Subject, folders_of, nothing_else_changed, static_checks

Failed = Callable[..., dict[str, str]]

PRISTINE = {
    "pkg/__init__.py": "",
    "pkg/kind.py": "from pkg.gone import dead\n\n\nclass Kind:\n    A = 1\n",
    "pkg/helper.py": "def assist(a, b): ...\n",
    "pkg/other.py": "x = 1\n",
}
DESIRED = {
    "pkg/kind.py": "from pkg.gone import dead\n\n\nclass Kind:\n    A = 1\n    B = 1\n",
    "pkg/new.py": "from pkg.helper import assist\nfrom . import kind\n",
}
STEP = Step(
    "one",
    "",
    "",
    (
        Variant(
            "v",
            edits=(
                AddEnumMember("pkg/kind.py", "Kind", "B", after="A"),
                AddFile("pkg/new.py", DESIRED["pkg/new.py"].encode()),
            ),
            contract=(Contract("pkg/helper.py", "assist", ("a", "b")),),
        ),
    ),
    contract=(Contract("pkg/kind.py", "Kind"),),
    postcondition=(Defines("pkg/kind.py", "Kind.B"),),
)
RESULT = StepResult("one", StepOutcome.PENDING, "v", ("pkg/kind.py", "pkg/new.py"))


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    """A pristine installation."""
    info = tmp_path / "pkg-1.dist-info"
    info.mkdir()
    (tmp_path / "pkg").mkdir()
    for path, text in PRISTINE.items():
        (tmp_path / path).write_text(text)
    rows = [records.row_for(path, text.encode()) for path, text in PRISTINE.items()]
    (info / "RECORD").write_text("\n".join([*rows, "pkg-1.dist-info/RECORD,,", ""]))
    return find("pkg", "pkg", root=str(tmp_path))


@pytest.fixture
def subject(installation: Installation, tmp_path: Path) -> Subject:
    """The planned tree over it."""
    return Subject(
        patchset=Patchset("p", "1", "", "pkg", "pkg", "", (STEP,)),
        steps=(RESULT,),
        tree=tree(tmp_path, DESIRED),
        pristine=Tree(read_from(tmp_path)),
        paths=tuple(DESIRED),
        folders=folders_of(installation),
    )


def tree(folder: Path, files: Mapping[str, str | bytes]) -> Tree:
    return Tree(
        read_from(folder), {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
    )


@pytest.fixture
def failed(subject: Subject, tmp_path: Path) -> Failed:
    """``failed(files, **other)``: check → why, for those that fail with other files than the desired ones."""

    def get(files: Mapping[str, str | bytes] | None = None, **other: Any) -> dict[str, str]:
        results = static_checks(replace(subject, tree=tree(tmp_path, {**DESIRED, **(files or {})}), **other))
        return reasons_of(results)

    return get


def reasons_of(results: Sequence[CheckResult]) -> dict[str, str]:
    """Check → why, for those that fail."""
    assert {item.tier for item in results} == {Tier.STATIC}
    assert all(item.detail for item in results if item.outcome is CheckOutcome.FAILED)
    return {item.id: item.detail for item in results if item.outcome is not CheckOutcome.PASSED}


def test_all_pass_on_what_was_planned(subject: Subject, failed: Failed) -> None:
    assert failed() == {}
    assert [item.id for item in static_checks(subject)] == [
        "compiles:pkg/kind.py",
        "compiles:pkg/new.py",
        "style:pkg/kind.py",
        "style:pkg/new.py",
        "imports:pkg/kind.py",
        "imports:pkg/new.py",
        "contract:one",
        "step:one",
    ]


class TestCompiles:
    @pytest.mark.parametrize(
        "text",
        [
            "class Kind:\n    A = 1\n    B = 1\nreturn 1\n",
            "def (\n",
            "x = 1\0",
            b"x = '\xff'\n",
            "def f():\n    yield\n    nonlocal q\n",
        ],
    )
    def test_fails_on_what_python_does_not_take(self, failed: Failed, text: str | bytes) -> None:
        reasons = failed({"pkg/kind.py": text})
        assert "does not compile" in reasons["compiles:pkg/kind.py"] and "compiles:pkg/new.py" not in reasons

    def test_fails_on_a_file_that_is_gone(self, failed: Failed) -> None:
        assert failed(paths=(*DESIRED, "pkg/gone.py"))["compiles:pkg/gone.py"] == "pkg/gone.py is missing"


class TestStyle:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (
                "from pkg.gone import dead\r\n\n\nclass Kind:\n    A = 1\n    B = 1\n",
                r"other line ends than before: b'\r\n'",
            ),
            (
                "from pkg.gone import dead\n\n\nclass Kind:\n    A = 1\r    B = 1\n",
                r"other line ends than before: b'\r'",
            ),
            ("\ufefffrom pkg.gone import dead\n\n\nclass Kind:\n    A = 1\n    B = 1\n", "another byte-order mark"),
            ("from pkg.gone import dead\n\n\nclass Kind:\n    A = 1\n    B = 1", "ends in another way"),
        ],
    )
    def test_fails_on_a_file_that_is_not_written_as_it_was(self, failed: Failed, text: str, words: str) -> None:
        """patch-package #191, milahu #26, OpenWA #987: mixed line ends, a lost mark, a last line without its end."""
        assert words in failed({"pkg/kind.py": text})["style:pkg/kind.py"]

    def test_an_added_file_has_its_own(self, failed: Failed) -> None:
        assert "style:pkg/new.py" not in failed({"pkg/new.py": "\ufeffx = 1\r\n"})


class TestImports:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("from pkg.helper import gone\n", "line 1: pkg.helper has no gone"),
            ("x = 1\nfrom pkg.nowhere import x\n", "line 2: pkg.nowhere has no x"),
            ("import pkg.nowhere\n", "line 1: there is no pkg.nowhere"),
            ("def f():\n    from .helper import lost\n", "line 2: pkg.helper has no lost"),
        ],
    )
    def test_fails_on_a_name_that_does_not_exist(self, failed: Failed, text: str, words: str) -> None:
        assert failed({"pkg/new.py": text})["imports:pkg/new.py"] == words

    def test_a_dead_import_of_upstreams_own_is_not_ours_to_judge(self, failed: Failed) -> None:
        text = DESIRED["pkg/kind.py"].replace("import dead", "import dead, deader")
        assert failed({"pkg/kind.py": text})["imports:pkg/kind.py"] == "line 1: pkg.gone has no deader"

    def test_other_packages_are_not_looked_at(self, failed: Failed) -> None:
        assert "imports:pkg/new.py" not in failed({"pkg/new.py": "import torch_that_is_not_here\n"})


class TestContract:
    def test_fails_when_a_called_function_changes(self, failed: Failed) -> None:
        reasons = failed({"pkg/helper.py": "def assist(a): ...\n"})
        assert reasons["contract:one"] == "assist in pkg/helper.py no longer takes b"

    def test_fails_when_it_is_gone(self, failed: Failed) -> None:
        assert "needs Kind" in failed({"pkg/kind.py": "class Sort:\n    A = 1\n"})["contract:one"]

    def test_is_not_asked_of_steps_that_are_not_needed(self, subject: Subject) -> None:
        idle = replace(subject, steps=(replace(RESULT, outcome=StepOutcome.NOT_NEEDED),))
        assert {item.id for item in static_checks(idle)}.isdisjoint({"contract:one", "step:one"})


class TestStep:
    @pytest.mark.parametrize("path", DESIRED)
    def test_fails_when_an_edit_is_not_in_effect(self, failed: Failed, path: str) -> None:
        assert path in failed({path: PRISTINE.get(path, "x = 1\n")})["step:one"]

    def test_fails_when_the_postcondition_does_not_hold(self, failed: Failed) -> None:
        promised = replace(STEP, postcondition=(Defines("pkg/kind.py", "Kind.C"),))
        other = Patchset("p", "1", "", "pkg", "pkg", "", (promised,))
        assert failed(patchset=other) == {"step:one": "does not hold: pkg/kind.py defines Kind.C"}


class TestStamp:
    IDENTITY = PatchsetIdentity("p", "1", "ab" * 32)
    EDIT = AddStampedFile(
        "pkg/stamp.py", b'ID = "@PATCHSET_ID@"\nVERSION = "@PATCHSET_VERSION@"\nDIGEST = "@PATCHSET_DIGEST@"\n'
    ).stamped(IDENTITY)

    @pytest.fixture
    def stamped(self, failed: Failed) -> Failed:
        """``stamped(content)``: why checks fail where that is the file that says which patchset this is."""
        patchset = Patchset("p", "1", "", "pkg", "pkg", "", (Step("s", "", "", (Variant("v", edits=(self.EDIT,)),)),))
        steps = (StepResult("s", StepOutcome.PENDING, "v", ("pkg/stamp.py",)),)
        return lambda content: failed({"pkg/stamp.py": content}, patchset=patchset, steps=steps)

    def test_passes_on_the_patchsets_own(self, stamped: Failed) -> None:
        assert stamped(self.EDIT.content) == {}

    def test_fails_on_that_of_another(self, stamped: Failed) -> None:
        reasons = stamped(self.EDIT.content.replace(b"abab", b"cdcd", 1))
        assert reasons["stamp:pkg/stamp.py"].startswith("pkg/stamp.py says that its DIGEST is 'cdcd")
        assert set(reasons) == {"step:s", "stamp:pkg/stamp.py"}


class TestNothingElseChanged:
    @pytest.fixture
    def others(self, installation: Installation, tmp_path: Path) -> Callable[..., dict[str, str]]:
        """The patch is on disk, and ``others(drift={})`` says why the check fails."""
        for path, text in DESIRED.items():
            (tmp_path / path).write_text(text)
        return lambda drift=None: reasons_of([nothing_else_changed(installation, DESIRED, drift or {})])

    def test_passes_beside_what_was_patched(self, others: Callable[..., dict[str, str]]) -> None:
        assert others() == {}

    def test_fails_on_an_edit_of_somebody_else(self, others: Callable[..., dict[str, str]], tmp_path: Path) -> None:
        (tmp_path / "pkg/other.py").write_text("x = 2\n")
        assert others() == {"nothing-else-changed": "pkg/other.py is not what RECORD says"}
        assert others({"pkg/other.py": sha256(b"x = 2\n")}) == {}
        assert others({"pkg/other.py": sha256(b"x = 3\n")})

    def test_fails_on_a_file_that_was_deleted(self, others: Callable[..., dict[str, str]], tmp_path: Path) -> None:
        (tmp_path / "pkg/other.py").unlink()
        assert others() == {"nothing-else-changed": "pkg/other.py is missing"}

    def test_files_that_record_does_not_prove_do_not_count(
        self, others: Callable[..., dict[str, str]], tmp_path: Path
    ) -> None:
        (tmp_path / "pkg/unrecorded.py").write_text("x = 2\n")
        assert others() == {}
