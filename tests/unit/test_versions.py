"""Which releases a command line means."""

from __future__ import annotations

import pytest

from ddtree_patcher.errors import UsageError
from ddtree_patcher.operations.versions import releases_meant

KNOWN = ("0.5.11", "0.5.12", "0.5.12.post1", "0.5.13", "0.5.14")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("", "0.5.11 0.5.12 0.5.12.post1 0.5.13 0.5.14"),
        ("0.5.13", "0.5.13"),
        ("0.5.13 0.5.11", "0.5.11 0.5.13"),
        ("0.5.13 0.5.13 v0.5.13", "0.5.13"),
        ("0.5.12 … 0.5.13", "0.5.12 0.5.12.post1 0.5.13"),
        ("0.5.12 ... 0.5.13", "0.5.12 0.5.12.post1 0.5.13"),
        ("0.5.12 .. 0.5.13", "0.5.12 0.5.12.post1 0.5.13"),
        ("0.5.12 - 0.5.13", "0.5.12 0.5.12.post1 0.5.13"),
        ("0.5.12...0.5.13", "0.5.12 0.5.12.post1 0.5.13"),
        ("0.5.12..0.5.13", "0.5.12 0.5.12.post1 0.5.13"),
        ("0.5.12…0.5.13", "0.5.12 0.5.12.post1 0.5.13"),
        ("0.5.9 0.5.12.post1…0.5.13 0.5.14", "0.5.9 0.5.12.post1 0.5.13 0.5.14"),
        ("0.5.12 … 0.5.12", "0.5.12"),
        # An end that is not known was named all the same.
        ("0.5.9 … 0.5.11", "0.5.9 0.5.11"),
        ("0.5.14 … 0.5.99", "0.5.14 0.5.99"),
        ("0.5.20", "0.5.20"),
        ("0.5.2", "0.5.2"),
    ],
)
def test_what_is_meant(words: str, meant: str) -> None:
    assert releases_meant(words.split(), KNOWN) == tuple(meant.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("latest", "'latest' is no version"),
        ("0.5.11,0.5.12", "'0.5.11,0.5.12' is no version"),
        ("0.5.11-0.5.12", "'0.5.11-0.5.12' is no version"),
        ("0.5.11....0.5.12", "is no version"),
        ("0.5.13 … 0.5.11", "the range 0.5.13 … 0.5.11 runs backwards"),
        ("0.5.13 …", "the range 0.5.13 … has no end"),
        ("0.5.13...", "'' is no version"),
        ("… 0.5.13", "'…' is no version"),
        ("0.5.11 … … 0.5.13", "'…' is no version"),
        ("0.5.11 … 0.5.12 … 0.5.13", "'…' is no version"),
    ],
)
def test_what_means_nothing_is_refused_with_an_example(words: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        releases_meant(words.split(), KNOWN)
    assert said in caught.value.summary
    assert "0.5.11 … 0.5.23" in caught.value.remedy
