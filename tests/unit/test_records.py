"""RECORD: read, appended to, and taken back."""

from __future__ import annotations

import base64
import csv
import hashlib
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddtree_patcher.errors import EnvironmentRefused
from ddtree_patcher.model import ExitCode
from ddtree_patcher.records import parse, row_for

DIGEST = hashlib.sha256(b"x = 1\n").hexdigest()
ROW = "a/b.py,sha256=" + base64.urlsafe_b64encode(bytes.fromhex(DIGEST)).rstrip(b"=").decode() + ",6"


class TestParse:
    def test_path_digest_and_size(self) -> None:
        record = parse(f"{ROW}\na.dist-info/RECORD,,\n".encode(), "RECORD")
        row = record.rows["a/b.py"]
        assert (row.path, row.sha256, row.size) == ("a/b.py", DIGEST, 6)
        assert (record.rows["a.dist-info/RECORD"].sha256, record.rows["a.dist-info/RECORD"].size) == ("", -1)

    @pytest.mark.parametrize("newline", ["\n", "\r\n"])
    @pytest.mark.parametrize("end", ["", "\n", "\n\n"])
    def test_any_newline_and_blank_lines(self, newline: str, end: str) -> None:
        record = parse(f"{ROW}\nb.py,,{end}".replace("\n", newline).encode(), "RECORD")
        assert list(record.rows) == ["a/b.py", "b.py"]

    def test_quoted_paths(self) -> None:
        assert list(parse(b'"a,b.py",,\n"c""d.py",,\n', "RECORD").rows) == ["a,b.py", 'c"d.py']

    @pytest.mark.parametrize("digest", ["", "md5=AAAA", "sha512=AAAA", "sha256=", "sha256", "sha256=é"])
    def test_other_kinds_of_hash_prove_nothing(self, digest: str) -> None:
        assert parse(f"a.py,{digest},1\n".encode(), "RECORD").rows["a.py"].sha256 == ""

    @pytest.mark.parametrize(
        ("data", "words"),
        [
            (b"a.py,,\nb.py\nc.py,,,\n", "line 2: b.py; line 3: c.py"),
            (b",,\n", "line 1"),
            (b"a.py,,big\n", "line 1: a.py,,big"),
            (b"a.py,,-1\n", "line 1"),
            (b"", "it has no rows"),
            (b"\n\n", "it has no rows"),
            (b"a.py,,\n\xff\n", "not a RECORD file"),
            (b"\0\0\0", "RECORD"),
        ],
    )
    def test_refuses_what_is_damaged_with_all_that_is_wrong(self, data: bytes, words: str) -> None:
        with pytest.raises(EnvironmentRefused, match=words) as caught:
            parse(data, "x/RECORD")
        assert caught.value.exit_code is ExitCode.ENVIRONMENT_REFUSED
        assert caught.value.summary.startswith("x/RECORD") and "Reinstall" in caught.value.remedy

    def test_at_most_five_problems_are_shown(self) -> None:
        with pytest.raises(EnvironmentRefused) as caught:
            parse(b"bad\n" * 9, "RECORD")
        assert caught.value.summary.count("line ") == 5


class TestRows:
    def test_as_pip_writes_them(self) -> None:
        assert row_for("a/b.py", b"x = 1\n") == ROW
        assert row_for('a,"b".py', b"").startswith('"a,""b"".py",sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0')

    @pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
    def test_appended_with_the_files_newline_and_sorted(self, newline: bytes) -> None:
        data = ROW.encode() + newline
        after = parse(data, "RECORD").with_rows({"z.py": b"", "y.py": b""})
        assert after.startswith(data)
        assert [line.partition(b",")[0] for line in after[len(data) :].split(newline)] == [b"y.py", b"z.py", b""]

    def test_a_last_row_without_a_newline_is_ended_first(self) -> None:
        after = parse(ROW.encode(), "RECORD").with_rows({"z.py": b""})
        assert after.startswith(ROW.encode() + b"\nz.py,")

    def test_removed_whatever_the_quotes(self) -> None:
        record = parse(b'a.py,,\r\n"b,c.py",,\r\n"d.py",,\r\ne.py,,', "RECORD")
        assert record.without_rows(["b,c.py", "d.py", "not-there.py"]) == b"a.py,,\r\ne.py,,"


_PATHS = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\n\0", exclude_categories=["Cs"]), min_size=1, max_size=12
)


@settings(deadline=None, max_examples=80)
@given(
    st.dictionaries(_PATHS, st.binary(max_size=8), min_size=1, max_size=5),
    st.dictionaries(_PATHS, st.binary(max_size=8), max_size=4),
    st.sampled_from(["\n", "\r\n"]),
)
def test_removing_what_was_appended_gives_the_same_bytes(
    there: dict[str, bytes], added: dict[str, bytes], newline: str
) -> None:
    added = {path: content for path, content in added.items() if path not in there}
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator=newline).writerows([path, "", len(content)] for path, content in there.items())
    record = parse(out.getvalue().encode(), "RECORD")
    after = record.with_rows(added)
    grown = parse(after, "RECORD")
    assert after.startswith(record.data)
    assert {path: row.sha256 for path, row in grown.rows.items() if path in added} == {
        path: hashlib.sha256(content).hexdigest() for path, content in added.items()
    }
    assert grown.without_rows([*added]) == record.data
