"""The state folder: what is read from it is data, and is not believed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ddtree_patcher.digest import sha256
from ddtree_patcher.errors import EnvironmentRefused, PatchError, UsageError
from ddtree_patcher.model import ExitCode, PatchsetIdentity, StepOutcome, StepResult
from ddtree_patcher.output import write_output
from ddtree_patcher.store import Entry, Journal, JournalEntry, State, Store, inside

A, B = sha256(b"a"), sha256(b"b")
STATE = State(
    patchset=PatchsetIdentity("p", "1", A),
    version="1.0",
    steps=(StepResult("one", StepOutcome.ALREADY, "v", ("pkg/f.py",), "it is so"),),
    files=(Entry("pkg/f.py", A, B, 5, 0o640), Entry("pkg/new.py", "", B)),
    record=Entry("pkg-1.dist-info/RECORD", A, B, 6, 0o644),
    caches=(Entry("pkg/__pycache__/f.pyc", A, "", 7, 0o600),),
    folders=("pkg/made",),
    drift={"pkg/g.py": A},
    whole=False,
)
JOURNAL = Journal(
    pid=7,
    changes=(
        JournalEntry("pkg/f.py", A, B, 0o640, 5, "pkg/.f.py.tmp"),
        JournalEntry("pkg/gone.py", A, "", 0o644, 6, "pkg/.gone.py.tmp"),
    ),
    folders=("pkg/made",),
    state=None,
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "state")
    store.open()
    return store


def edit(store: Store, name: str, change: Callable[[Any], None]) -> None:
    value = json.loads((store.folder / name).read_bytes())
    change(value)
    (store.folder / name).write_text(json.dumps(value))


class TestState:
    def test_comes_back_as_it_went(self, store: Store) -> None:
        store.write_state(STATE)
        assert store.state() == STATE
        assert [STATE.entry("pkg/f.py"), STATE.entry("pkg/x.py")] == [STATE.files[0], None]
        assert [entry.added for entry in STATE.files] == [False, True]

    def test_none(self, store: Store) -> None:
        assert store.state() is None and store.journal() is None
        store.write_state(STATE)
        store.write_state(None)
        assert store.state() is None and not (store.folder / "state.json").exists()

    @pytest.mark.parametrize(
        "change",
        [
            lambda value: value.pop("files"),
            lambda value: value.update(schema="other/1"),
            lambda value: value.update(files=[{}]),
            lambda value: value.update(files=7),
            lambda value: value["patchset"].update(extra=1),
            lambda value: value["files"][0].update(pristine_mtime_ns="soon"),
            lambda value: value["steps"][0].update(outcome="skipped"),
            lambda value: value["files"][0].update(path="../f.py"),
            lambda value: value["files"][0].update(pristine_sha256="../../../etc/passwd"),
            lambda value: value["files"][0].update(patched_sha256=7),
            lambda value: value["files"][0].update(pristine_mtime_ns=10**4000),
            lambda value: value["files"][0].update(pristine_mtime_ns=float("inf")),
            lambda value: value["files"][0].update(pristine_mode=0o100644),
            lambda value: value["patchset"].update(digest=7),
            lambda value: value["patchset"].update(id=["p"]),
            lambda value: value["patchset"].update(version="\x1b[2J"),
            lambda value: value["files"][0].update(path="/etc/passwd"),
            lambda value: value["files"][0].update(path="pkg/../../f.py"),
            lambda value: value["files"][0].update(path=""),
            lambda value: value["record"].update(path="/RECORD"),
            lambda value: value["caches"][0].update(path="../x.pyc"),
            lambda value: value["folders"].append("../.."),
            lambda value: value["drift"].update({"/x": "y"}),
            lambda value: value["steps"][0].update(files=["../x"]),
        ],
    )
    def test_damaged(self, store: Store, change: Callable[[Any], None]) -> None:
        store.write_state(STATE)
        edit(store, "state.json", change)
        with pytest.raises(PatchError, match=r"state\.json") as caught:
            store.state()
        assert caught.value.exit_code is ExitCode.ERROR and "Reinstall" in caught.value.remedy

    @pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff", b"3"])
    def test_not_json(self, store: Store, data: bytes) -> None:
        (store.folder / "state.json").write_bytes(data)
        with pytest.raises(PatchError, match=r"state\.json"):
            store.state()


class TestJournal:
    @pytest.mark.parametrize("state", [None, STATE])
    def test_comes_back_as_it_went(self, store: Store, state: State | None) -> None:
        store.write_state(state)
        journal = Journal(JOURNAL.pid, JOURNAL.changes, JOURNAL.folders, store.raw_state())
        store.write_journal(journal)
        assert store.journal() == journal
        store.end_journal()
        assert store.journal() is None

    @pytest.mark.parametrize(
        "change",
        [
            lambda value: value["changes"][0].update(path="../f.py"),
            lambda value: value["changes"][0].update(staged="/tmp/x"),
            lambda value: value["folders"].append(".."),
            lambda value: value.update(state={"schema": "x"}),
            lambda value: value.update(pid="x"),
            lambda value: value.pop("changes"),
        ],
    )
    def test_damaged(self, store: Store, change: Callable[[Any], None]) -> None:
        store.write_journal(JOURNAL)
        edit(store, "journal.json", change)
        with pytest.raises(PatchError, match=r"journal\.json is damaged"):
            store.journal()


class TestObjects:
    def test_by_their_digest(self, store: Store) -> None:
        assert store.put(b"bytes") == sha256(b"bytes")
        assert store.get(sha256(b"bytes")) == b"bytes"
        assert store.put(b"bytes") == sha256(b"bytes")

    def test_lost(self, store: Store) -> None:
        with pytest.raises(PatchError, match="has lost the bytes") as caught:
            store.get(A)
        assert "Reinstall" in caught.value.remedy

    def test_with_a_wrong_digest(self, store: Store) -> None:
        (store.folder / "objects" / store.put(b"bytes")).write_bytes(b"other")
        with pytest.raises(PatchError, match="is damaged"):
            store.get(sha256(b"bytes"))


class TestFolder:
    def test_reading_makes_none(self, tmp_path: Path) -> None:
        store = Store(tmp_path / "state")
        assert store.state() is None and store.journal() is None
        assert not store.folder.exists()

    def test_beside_the_package_or_where_it_is_told(self, tmp_path: Path) -> None:
        assert Store.beside(tmp_path).folder == tmp_path / ".ddtree-patch"
        first, second = (Store.beside(tmp_path / name, str(tmp_path / "kept")).folder for name in ("one", "two"))
        assert first.parent == second.parent == tmp_path / "kept" and first != second

    def test_clean_keeps_what_the_state_needs(self, store: Store) -> None:
        wanted = store.put(b"a")
        store.put(b"unused")
        store.write_state(STATE)
        for litter in ("state.json.7.tmp", "probe", "objects/x.7.tmp"):
            (store.folder / litter).write_bytes(b"")
        store.clean()
        assert sorted(item.name for item in store.folder.iterdir()) == ["objects", "state.json"]
        assert [item.name for item in (store.folder / "objects").iterdir()] == [wanted]

    def test_clean_without_a_state_leaves_nothing_but_what_is_not_ours(self, store: Store) -> None:
        store.put(b"a")
        (store.folder / "theirs.txt").write_text("kept")
        store.clean()
        assert [item.name for item in store.folder.iterdir()] == ["theirs.txt"]
        (store.folder / "theirs.txt").unlink()
        store.clean()
        assert not store.folder.exists()

    def test_not_writable(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(EnvironmentRefused, match="is not writable") as caught:
            Store(tmp_path / "file" / "state").open()
        assert "--state-dir" in caught.value.remedy


class TestInside:
    @pytest.mark.parametrize("path", ["a", "a/b.py", "a/..b", ".hidden/x"])
    def test_a_path_that_stays(self, path: str) -> None:
        assert inside(path) == path

    @pytest.mark.parametrize(
        "path", ["", "/a", "..", "../a", "a/../b", "a/..", "a\\b", "a\0b", "//a", ".", "./a", "a/", "a//b"]
    )
    def test_a_path_that_leaves(self, path: str) -> None:
        with pytest.raises(ValueError, match="leaves the tree"):
            inside(path)

    @pytest.mark.parametrize("path", ["a\nb", "\x1b[2Ja"])
    def test_a_path_that_would_do_things_to_a_terminal(self, path: str) -> None:
        with pytest.raises(ValueError, match="control characters"):
            inside(path)

    def test_a_path_that_no_file_can_have(self) -> None:
        with pytest.raises(ValueError, match="surrogates not allowed"):
            inside("a\ud800")


class TestOutput:
    def test_with_its_folders(self, tmp_path: Path) -> None:
        write_output(tmp_path / "a/b.json", b"x")
        assert (tmp_path / "a/b.json").read_bytes() == b"x"

    def test_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="cannot be written"):
            write_output(tmp_path, b"x")
