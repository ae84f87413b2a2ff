"""Snapshots: captured, written and read, compared, and the nearest found."""

from __future__ import annotations

import hashlib
import io
import json
import textwrap
import zipfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtree_patcher import resources, snapshot_compare
from ddtree_patcher import snapshot as snapshot_module
from ddtree_patcher.errors import SourceError, UsageError
from ddtree_patcher.fingerprint import MODULE, Symbol, SymbolKind
from ddtree_patcher.snapshot import (
    SCHEMA,
    Absent,
    FileFingerprint,
    Read,
    Snapshot,
    capture,
    from_bytes,
    load,
    to_bytes,
)
from ddtree_patcher.snapshot_compare import ChangeKind, SymbolChange, compare, nearest
from ddtree_patcher.snapshot_sources import read_folder, read_wheel

A, B = "sglang/srt/a.py", "sglang/srt/b.py"


def reader(files: Mapping[str, str]) -> Read:
    def read(path: str) -> bytes:
        if path not in files:
            raise FileNotFoundError(path)
        return textwrap.dedent(files[path]).encode()

    return read


def taken(files: Mapping[str, str], version: str = "1.0") -> Snapshot:
    return capture("sglang", version, [A, B], reader(files))


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """As (change, file, qualname), without the file's own ``<module>``."""
    found = compare(taken(before), taken(after))
    return [(one.change.value, one.path[-4], one.qualname) for one in found if one.qualname != MODULE]


class TestCapture:
    def test_holds_digest_size_and_symbols_by_qualname(self) -> None:
        file = taken({A: "def b(): ...\na = 1\n"}).files[A]
        assert isinstance(file, FileFingerprint)
        assert file.size == 19
        assert file.sha256 == hashlib.sha256(b"def b(): ...\na = 1\n").hexdigest()
        assert [(symbol.qualname, symbol.line) for symbol in file.symbols] == [(MODULE, 1), ("a", 2), ("b", 1)]

    def test_a_missing_file_is_recorded_as_absent(self) -> None:
        assert taken({A: "x = 1"}).files[B] is Absent.ABSENT

    def test_a_file_that_is_known_by_its_digest_is_not_parsed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        known = taken({A: "x = 1", B: "y = 1"})
        parsed: list[str] = []
        real = snapshot_module.fingerprint_file

        def counted(data: bytes, path: str) -> FileFingerprint:
            parsed.append(path)
            return real(data, path)

        monkeypatch.setattr(snapshot_module, "fingerprint_file", counted)
        current = capture("sglang", "2.0", [A, B], reader({A: "x = 1", B: "y = 2"}), known=known)
        assert parsed == [B]
        assert current.files[A] is known.files[A]

    def test_a_file_that_is_not_python_is_named(self) -> None:
        with pytest.raises(SourceError) as caught:
            taken({A: "def"})
        assert caught.value.path == A


WRITTEN = """\
{
  "distribution": "sglang",
  "files": {
    "sglang/srt/a.py": {
      "sha256": "d735547aff629457318312d0f659b0b53dcb975043d5c6b7866f131bbe8683f2",
      "size": 23,
      "symbols": {
        "<module>": {"hash": "ad2e13b69c4fc1fd", "kind": "module", "text": "e3b0c44298fc1c14"},
        "f": {"hash": "7f9c15908411437d", "kind": "function", "signature": "(é=1)", "text": "5c7d9b29e762de85"},
        "x": {"hash": "13e287e3ff10c97f", "kind": "constant", "text": "8ff436def1451285"}
      }
    },
    "sglang/srt/b.py": "absent"
  },
  "schema": "ddtree-patch.snapshot/1",
  "version": "1.0"
}
"""


class TestBytes:
    def test_one_symbol_a_line_and_keys_sorted(self) -> None:
        assert to_bytes(taken({A: "def f(é=1): ...\nx = 1\n"})).decode() == WRITTEN

    def test_the_order_of_capture_does_not_show(self) -> None:
        read = reader({A: "x = 1", B: "y = 1"})
        assert to_bytes(capture("sglang", "1", [A, B], read)) == to_bytes(capture("sglang", "1", [B, A, B], read))

    def test_a_snapshot_without_files_is_valid(self) -> None:
        empty = Snapshot("sglang", "1.0", {})
        assert from_bytes(to_bytes(empty)) == empty

    GOOD = to_bytes(taken({A: "x = 1"}))

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"\xff\xfe",
            b"not json",
            b"[]",
            b"null",
            b"{}",
            GOOD[: len(GOOD) // 2],
            GOOD[:-3],
            GOOD.replace(b"snapshot/1", b"snapshot/2"),
            GOOD.replace(b'"constant"', b'"variable"'),
            GOOD.replace(b'"absent"', b'"gone"'),
            GOOD.replace(b'"absent"', b"3"),
            GOOD.replace(b'"size": 5', b'"size": "5"'),
            GOOD.replace(b'"sha256": "', b'"sha256": "z'),
            GOOD.replace(b'"hash"', b'"hush"'),
            GOOD.replace(b'"version": "1.0"', b'"version": "../1.0"'),
            GOOD.replace(A.encode(), b"../" + A.encode()),
            GOOD.replace(A.encode(), b"/" + A.encode()),
            GOOD.replace(b'"kind": "module"', b'"kind": "module", "signature": 1'),
        ],
    )
    def test_anything_else_is_refused_by_name(self, data: bytes) -> None:
        assert data != self.GOOD
        with pytest.raises(UsageError) as caught:
            from_bytes(data, path="some/snapshot.json")
        assert "some/snapshot.json" in caught.value.summary
        assert caught.value.path == "some/snapshot.json"
        assert caught.value.remedy


class TestCompare:
    """Before and after, and the changes that tell them apart."""

    @pytest.mark.parametrize(
        ("before", "after", "expected"),
        [
            pytest.param({A: "x = 1"}, {A: "x = 1"}, [], id="nothing"),
            pytest.param({A: "x = 1"}, {A: "x = 1\ny = 2"}, [("added", "a", "y")], id="added"),
            pytest.param({A: "x = 1\ny = 2"}, {A: "x = 1"}, [("removed", "a", "y")], id="removed"),
            pytest.param({A: "x = 1"}, {A: "x = 2"}, [("changed", "a", "x")], id="changed"),
            pytest.param({A: "x = [1]"}, {A: "x = [ 1 ]  # why"}, [("reformatted", "a", "x")], id="reformatted"),
            pytest.param(
                {A: "def f():\n  'One.'"}, {A: "def f():\n  'Two.'"}, [("reformatted", "a", "f")], id="documented"
            ),
            pytest.param({A: "x = 1"}, {A: "y = 1"}, [("removed", "a", "x"), ("added", "a", "y")], id="renamed"),
            pytest.param({A: "x = 1\ny = 2"}, {A: "y = 2\nx = 1"}, [], id="reordered"),
            pytest.param(
                {A: "class C:\n  a = 1\n  b = 2"},
                {A: "class C:\n  a = 1\nclass D:\n  b = 2"},
                [("moved", "a", "C.b"), ("added", "a", "D")],
                id="moved to another class",
            ),
            pytest.param(
                {A: "def f(): ...\nx = 1", B: "y = 1"},
                {A: "x = 1", B: "y = 1\ndef f(): ..."},
                [("moved", "a", "f")],
                id="moved to another file",
            ),
            pytest.param(
                {A: "def f(): ...\nx = 1", B: "y = 1"},
                {A: "x = 1", B: "y = 1\ndef f(): return 1"},
                [("removed", "a", "f"), ("added", "b", "f")],
                id="moved and changed",
            ),
            pytest.param(
                {A: "class C:\n  x: int\n"},
                {A: "class C(Enum):\n  x: int\n"},
                [("changed", "a", "C")],
                id="a class changed in its header",
            ),
            pytest.param(
                {A: "class C:\n  x = 1\n"},
                {A: "class C(Enum):\n  x = 1\n"},
                [("changed", "a", "C"), ("changed", "a", "C.x")],
                id="a constant that became a member",
            ),
            pytest.param(
                {A: "x = 1"}, {A: "x = 1", B: "y = 1"}, [("file_added", "b", ""), ("added", "b", "y")], id="file added"
            ),
            pytest.param(
                {A: "x = 1", B: "y = 1"},
                {A: "x = 1"},
                [("file_removed", "b", ""), ("removed", "b", "y")],
                id="file removed",
            ),
            pytest.param(
                {A: "class W:\n  def run(self): ..."},
                {B: "class W:\n  def run(self): ..."},
                [("file_removed", "a", ""), ("moved", "a", "W"), ("moved", "a", "W.run"), ("file_added", "b", "")],
                id="file renamed",
            ),
            pytest.param(
                {A: "@overload\ndef f(a): ...\ndef f(a): return a"},
                {A: "def f(a): return a"},
                [("changed", "a", "f"), ("removed", "a", "f#2")],
                id="an overload less",
            ),
        ],
    )
    def test_table(
        self, before: Mapping[str, str], after: Mapping[str, str], expected: list[tuple[str, str, str]]
    ) -> None:
        assert changes(before, after) == expected

    def test_a_change_carries_signatures_and_the_current_line(self) -> None:
        found = compare(taken({A: "def f(a): ..."}), taken({A: "x = 1\ndef f(a, b): ..."}))
        assert found == (
            SymbolChange(ChangeKind.CHANGED, A, "f", SymbolKind.FUNCTION, "(a)", "(a, b)", line=2),
            SymbolChange(ChangeKind.ADDED, A, "x", SymbolKind.CONSTANT, line=1),
        )

    def test_a_move_says_where_to(self) -> None:
        before = {A: "class C:\n  def f(self): ...\ny = 1", B: "class D:\n  x = 1"}
        after = {A: "class C: ...\ny = 1", B: "class D:\n  x = 1\n  def f(self): ..."}
        (move,) = (one for one in compare(taken(before), taken(after)) if one.change is ChangeKind.MOVED)
        assert (move.path, move.qualname) == (A, "C.f")
        assert (move.new_path, move.new_qualname, move.line) == (B, "D.f", 3)
        assert move.before == move.after == "(self)"

    def test_a_move_within_the_file_goes_before_one_out_of_it(self) -> None:
        before = {A: "class C:\n  x = 1\nclass D: ...", B: "class E: ..."}
        after = {A: "class C: ...\nclass D:\n  x = 1", B: "class E:\n  x = 1"}
        found = compare(taken(before), taken(after))
        (move,) = (one for one in found if one.change is ChangeKind.MOVED)
        assert (move.new_path, move.new_qualname) == (A, "D.x")
        assert [one.qualname for one in found if one.change is ChangeKind.ADDED] == ["E.x"]

    def test_equal_code_in_several_places_is_paired_once_each(self) -> None:
        before = {A: "class C:\n  x = 1\nclass D:\n  x = 1", B: ""}
        after = {A: "class C: ...\nclass D: ...", B: "class E:\n  x = 1"}
        found = Counter(one.change for one in compare(taken(before), taken(after)) if one.qualname.endswith(".x"))
        assert found == {ChangeKind.MOVED: 1, ChangeKind.REMOVED: 1}

    def test_imports_are_told_as_the_module(self) -> None:
        (change,) = compare(taken({A: "import x\ny = 1"}), taken({A: "import z\ny = 1"}))
        assert (change.change, change.qualname) == (ChangeKind.CHANGED, MODULE)

    @pytest.mark.parametrize(
        "after", ["y = 1\nx = 1\n\n# The end.\n", "y = 1\n\nx = 1\n", "y = 1\r\nx = 1\r\n", "x = 1\ny = 1\n"]
    )
    def test_bytes_that_differ_are_never_passed_over(self, after: str) -> None:
        (change,) = compare(taken({A: "y = 1\nx = 1\n"}), taken({A: after}))
        assert (change.change, change.qualname) == (ChangeKind.REFORMATTED, MODULE)

    def test_a_loaded_snapshot_compares_like_a_captured_one(self) -> None:
        before, after = taken({A: "def f(a): ...\nx = 1"}), taken({A: "def f(b): ...", B: "x = 1"})
        assert compare(from_bytes(to_bytes(before)), after) == compare(before, after)


class TestNearest:
    ONE = taken({A: "a = 1\nb = 1\nc = 1"}, "1.0")
    TWO = taken({A: "a = 1\nb = 2\nc = 2"}, "2.0")
    TEN = taken({A: "a = 1\nb = 2\nc = 2", B: "d = 1"}, "10.0")

    def test_the_same_files_agree_wholly(self) -> None:
        match = nearest([self.ONE, self.TWO, self.TEN], reader({A: "a = 1\nb = 1\nc = 1"}))
        assert (match.snapshot, match.agreement, match.identical_files) == (self.ONE, 1.0, 2)

    def test_agreement_is_the_share_of_symbols(self) -> None:
        match = nearest([self.ONE, self.TWO], reader({A: "a = 1\nb = 1\nc = 3\nd = 4"}))
        assert match.snapshot is self.ONE
        assert match.agreement == pytest.approx(4 / 5)  # <module>, a, b and the absence of B, of those and c

    def test_a_file_that_should_be_absent_counts_against(self) -> None:
        match = nearest([self.TWO, self.TEN], reader({A: "a = 1\nb = 2\nc = 2", B: "d = 1"}))
        assert (match.snapshot, match.agreement) == (self.TEN, 1.0)

    def test_identical_files_break_a_tie(self) -> None:
        plain, loud = taken({A: "a = 1"}, "1.0"), taken({A: "a = 1  # loud"}, "2.0")
        assert nearest([plain, loud], reader({A: "a = 1"})).snapshot is plain

    def test_then_the_newest_version_wins_by_version_not_by_text(self) -> None:
        same = [taken({A: "a = 1"}, version) for version in ("9.0", "10.0", "10.0.post1", "10.0rc1")]
        assert nearest(same, reader({A: "a = 1"})).snapshot.version == "10.0.post1"
        assert nearest(reversed(same), reader({A: "a = 1"})).snapshot.version == "10.0.post1"

    def test_nothing_in_common_is_no_agreement(self) -> None:
        assert nearest([taken({A: "import x\na = 1", B: "b = 1"})], reader({})).agreement == 0.0

    def test_a_file_that_is_not_python_agrees_with_nothing_and_stops_nothing(self) -> None:
        match = nearest([self.TEN], reader({A: "def", B: "d = 1"}))
        assert match.agreement == pytest.approx(2 / 6)

    def test_each_file_is_read_and_parsed_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        seen: Counter[str] = Counter()
        real = snapshot_module.fingerprint_file

        def counted(data: bytes, path: str) -> FileFingerprint:
            seen.update([f"parse {path}"])
            return real(data, path)

        monkeypatch.setattr(snapshot_compare, "fingerprint_file", counted)
        files = reader({A: "a = 1\nb = 3", B: "d = 1"})

        def read(path: str) -> bytes:
            seen.update([f"read {path}"])
            return files(path)

        nearest([self.ONE, self.TWO, self.TEN], read)
        assert seen == {f"read {A}": 1, f"read {B}": 1, f"parse {A}": 1}

    def test_no_snapshots_is_refused(self) -> None:
        with pytest.raises(UsageError, match="no snapshot"):
            nearest([], reader({}))


class TestBundled:
    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        for version in ("0.5.9", "0.5.13", "0.5.13.post1"):
            file = taken({A: "x = 1"}, version)
            (tmp_path / file.file_name).write_bytes(to_bytes(file))
        monkeypatch.setattr(resources, "folder", lambda name: tmp_path)
        monkeypatch.setattr(snapshot_module, "bundled", snapshot_module.bundled.__wrapped__)
        return tmp_path

    def test_is_sorted_by_version(self, folder: Path) -> None:
        assert [one.version for one in snapshot_module.bundled()] == ["0.5.9", "0.5.13", "0.5.13.post1"]

    def test_load_by_version_or_by_path(self, folder: Path) -> None:
        assert load("0.5.13.post1").version == "0.5.13.post1"
        assert load(str(folder / "sglang-0.5.9.json")).version == "0.5.9"

    @pytest.mark.parametrize("spec", ["0.5.99", "no/such.json", "../0.5.13", ".", ""])
    def test_what_is_neither_is_refused_with_what_there_is(self, folder: Path, spec: str) -> None:
        with pytest.raises(UsageError) as caught:
            load(spec)
        assert repr(spec) in caught.value.summary
        assert "0.5.13.post1" in caught.value.remedy

    def test_a_corrupt_file_is_named(self, folder: Path) -> None:
        (folder / "sglang-0.5.9.json").write_bytes(b"{")
        with pytest.raises(UsageError, match=r"sglang-0\.5\.9\.json"):
            snapshot_module.bundled()

    def test_the_folder_is_the_packaged_one_or_that_of_the_checkout(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        package = tmp_path / "ddtree_patcher"
        package.mkdir()
        monkeypatch.setattr(resources, "__file__", str(package / "resources.py"))
        assert resources.folder("snapshots") == tmp_path / "snapshots"
        (package / "_snapshots").mkdir()
        assert resources.folder("snapshots") == package / "_snapshots"


class TestSources:
    METADATA = ("sglang-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: sglang\nVersion: 1.0\n\nText\n")

    def wheel(self, folder: Path, *members: tuple[str, str]) -> Path:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, text in members:
                archive.writestr(name, text)
        file = folder / "sglang-1.0-py3-none-any.whl"
        file.write_bytes(buffer.getvalue())
        return file

    def test_a_wheel_and_its_unpacked_folder_give_one_snapshot(self, tmp_path: Path) -> None:
        distribution, version, read, names = read_wheel(self.wheel(tmp_path, (A, "x = 1\n"), self.METADATA))
        assert names == {A, "sglang-1.0.dist-info/METADATA"}
        (tmp_path / A).parent.mkdir(parents=True)
        (tmp_path / A).write_text("x = 1\n")
        assert (distribution, version) == ("sglang", "1.0")
        assert capture("sglang", "1.0", [A, B], read) == capture("sglang", "1.0", [A, B], read_folder(tmp_path))

    def test_what_is_no_file_in_a_folder_is_absent(self, tmp_path: Path) -> None:
        (tmp_path / "sglang").write_text("a file where a folder should be")
        (tmp_path / "folder.py").mkdir()
        for path in (A, "folder.py"):
            with pytest.raises(FileNotFoundError):
                read_folder(tmp_path)(path)

    @pytest.mark.parametrize(
        "members",
        [
            (),
            ((A, "x = 1"),),
            (("sglang-1.0.dist-info/METADATA", "Name: sglang\n"),),
            (METADATA, ("b-1.dist-info/METADATA", "")),
        ],
        ids=["empty", "no metadata", "no version", "two distributions"],
    )
    def test_an_archive_that_is_no_wheel(self, tmp_path: Path, members: tuple[tuple[str, str], ...]) -> None:
        with pytest.raises(UsageError, match="not a readable wheel"):
            read_wheel(self.wheel(tmp_path, *members))

    def test_a_file_that_is_no_archive(self, tmp_path: Path) -> None:
        (tmp_path / "text.whl").write_bytes(b"text")
        (tmp_path / "folder.whl").mkdir()
        for name in ("text.whl", "folder.whl", "missing.whl"):
            with pytest.raises(UsageError, match=f"{name} is not a readable wheel"):
                read_wheel(tmp_path / name)

    def test_a_damaged_member(self, tmp_path: Path) -> None:
        file = self.wheel(tmp_path, (A, "x = 123456789\n"), self.METADATA)
        file.write_bytes(file.read_bytes().replace(b"123456789", b"123456780"))
        with pytest.raises(UsageError, match=A):
            read_wheel(file).read(A)


# --- properties --------------------------------------------------------------------------------------------------

SHORT = st.text("0123456789abcdef", min_size=16, max_size=16)
SYMBOLS = st.builds(Symbol, st.text(min_size=1), st.sampled_from(SymbolKind), st.text(), SHORT, SHORT, st.integers(0))
FILES = st.builds(
    FileFingerprint,
    st.text("0123456789abcdef", min_size=64, max_size=64),
    st.integers(0),
    st.lists(SYMBOLS, max_size=5, unique_by=lambda symbol: symbol.qualname).map(
        lambda found: tuple(sorted(found, key=lambda symbol: symbol.qualname))
    ),
)
PATHS = st.from_regex(r"[a-z_]{1,8}(/[a-z_]{1,8}){0,3}\.py", fullmatch=True)
SNAPSHOTS = st.builds(
    Snapshot,
    st.just("sglang"),
    st.from_regex(r"[0-9]{1,2}(\.[0-9]{1,2}){1,2}(\.post[0-9])?", fullmatch=True),
    st.dictionaries(PATHS, st.one_of(FILES, st.just(Absent.ABSENT)), max_size=4),
)


@given(SNAPSHOTS)
def test_what_is_written_is_what_is_read(snapshot: Snapshot) -> None:
    data = to_bytes(snapshot)
    assert from_bytes(data) == snapshot
    assert to_bytes(from_bytes(data)) == data
    assert data.endswith(b"\n") and b"\r" not in data
    assert json.loads(data)["schema"] == SCHEMA


@given(SNAPSHOTS, st.data())
def test_no_truncation_is_taken_for_a_snapshot(snapshot: Snapshot, data: st.DataObject) -> None:
    whole = to_bytes(snapshot)
    with pytest.raises(UsageError):
        from_bytes(whole[: data.draw(st.integers(0, len(whole) - 2))])


@given(SNAPSHOTS, SNAPSHOTS)
def test_comparing_backwards_swaps_what_is_added_and_removed(one: Snapshot, other: Snapshot) -> None:
    there, back = (Counter(change.change for change in compare(*pair)) for pair in ((one, other), (other, one)))
    assert there[ChangeKind.ADDED] == back[ChangeKind.REMOVED]
    assert there[ChangeKind.FILE_ADDED] == back[ChangeKind.FILE_REMOVED]
    for same in (ChangeKind.CHANGED, ChangeKind.REFORMATTED, ChangeKind.MOVED):
        assert there[same] == back[same]
    assert not compare(one, one)
