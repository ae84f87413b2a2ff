"""``add_stamped_file``: the file says which patchset brought it, and another identity in it is noticed."""

from __future__ import annotations

import pytest

from ddtree_patcher.codemods import AddFile, AddStampedFile
from ddtree_patcher.errors import PatchsetError
from ddtree_patcher.model import PatchsetIdentity

TEMPLATE = (
    b'ID = "@PATCHSET_ID@"\r\nVERSION = "@PATCHSET_VERSION@"  # text\r\nDIGEST = "@PATCHSET_DIGEST@"\r\nOTHER = 1\r\n'
)
IDENTITY = PatchsetIdentity("tree", "1.2", "ab" * 32)
EDIT = AddStampedFile("pkg/stamp.py", TEMPLATE)
STAMPED = b'ID = "tree"\r\nVERSION = "1.2"  # text\r\nDIGEST = "' + b"ab" * 32 + b'"\r\nOTHER = 1\r\n'


def test_it_is_a_file_like_any_other_once_it_is_stamped() -> None:
    stamped = EDIT.stamped(IDENTITY)
    assert isinstance(stamped, AddFile)
    assert (stamped.path, stamped.content, stamped.symbols()) == ("pkg/stamp.py", STAMPED, ())
    assert EDIT.content == TEMPLATE


@pytest.mark.parametrize("text", ['a "quoted" one', "back\\slash", "two\nlines", "ünï"])
def test_any_text_is_read_back_as_it_was(text: str) -> None:
    scope: dict[str, object] = {}
    exec(EDIT.stamped(PatchsetIdentity(text, "1", "d")).content.decode(), scope)
    assert (scope["ID"], scope["VERSION"], scope["DIGEST"]) == (text, "1", "d")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (TEMPLATE.replace(b"@PATCHSET_ID@", b"tree"), '"@PATCHSET_ID@" 0 times'),
        (TEMPLATE + b'AGAIN = "@PATCHSET_DIGEST@"\n', '"@PATCHSET_DIGEST@" 2 times'),
        (TEMPLATE.replace(b'"@PATCHSET_VERSION@"', b'"v@PATCHSET_VERSION@"'), '"@PATCHSET_VERSION@" 0 times'),
        (b"", '"@PATCHSET_ID@" 0 times'),
        (STAMPED, '"@PATCHSET_ID@" 0 times'),
    ],
    ids=["none", "two", "inside another text", "empty", "stamped before"],
)
def test_a_placeholder_that_is_not_there_once_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(PatchsetError) as caught:
        AddStampedFile("pkg/stamp.py", content).stamped(IDENTITY)
    assert f"pkg/stamp.py is stamped, and has {said}, not once" == caught.value.summary
    assert "@PATCHSET_DIGEST@" in caught.value.remedy


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (STAMPED, []),
        (STAMPED.replace(b"OTHER = 1", b"OTHER = 2"), []),
        (STAMPED.replace(b"abab", b"cdab", 1), ["says that its DIGEST is 'cdab"]),
        (STAMPED.replace(b"1.2", b"1.3"), ["says that its VERSION is '1.3', and this patchset's is '1.2'"]),
        (TEMPLATE, ["ID is '@PATCHSET_ID@'", "VERSION is '@PATCHSET_VERSION@'", "DIGEST is '@PATCHSET_DIGEST@'"]),
        (STAMPED.replace(b"ID =", b"NAME =", 1), ["does not say what its ID is"]),
        (b"def (\n", ["what its ID is", "what its VERSION is", "what its DIGEST is"]),
    ],
    ids=["same", "something else", "digest", "version", "not stamped", "renamed", "not Python"],
)
def test_what_says_another_patchset(data: bytes, said: list[str]) -> None:
    misfits = list(EDIT.stamped(IDENTITY).misfits(data))
    assert len(misfits) == len(said)
    assert all(words in text and text.startswith("pkg/stamp.py ") for words, text in zip(said, misfits, strict=True))
