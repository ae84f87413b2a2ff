"""Who changed which bytes, in the coordinates of the pristine file."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddtree_patcher.codemods import Splice, apply_splices
from ddtree_patcher.spans import Ledger, to_pristine

INSERTED = [[Splice(4, 4, b"new!")]]
REPLACED = [[Splice(2, 5, b"x")]]


class TestToPristine:
    @pytest.mark.parametrize(
        ("span", "pristine"),
        [
            ((0, 3), (0, 3)),
            ((4, 4), (4, 4)),
            ((8, 9), (4, 5)),
            ((5, 7), (4, 4)),
            ((2, 6), (2, 4)),
            ((6, 10), (4, 6)),
        ],
    )
    def test_around_an_insertion(self, span: tuple[int, int], pristine: tuple[int, int]) -> None:
        assert to_pristine(INSERTED, *span) == pristine

    @pytest.mark.parametrize(
        ("span", "pristine"), [((0, 2), (0, 2)), ((3, 4), (5, 6)), ((1, 4), (1, 6)), ((2, 3), (2, 5))]
    )
    def test_around_a_replacement(self, span: tuple[int, int], pristine: tuple[int, int]) -> None:
        assert to_pristine(REPLACED, *span) == pristine

    def test_through_several_layers(self) -> None:
        layers = [[Splice(0, 0, b"abc"), Splice(5, 6, b"")], [Splice(3, 3, b"zz")]]
        assert to_pristine(layers, 3, 5) == (0, 0)
        assert to_pristine(layers, 5, 7) == (0, 2)
        assert to_pristine(layers, 10, 11) == (5, 7)  # beside what was taken out: widened to it


@st.composite
def splices(draw: st.DrawFn, length: int, shortest: int) -> list[Splice]:
    """Splices of a text that keep a byte between each other."""
    cuts = sorted(draw(st.lists(st.integers(0, length), max_size=6, unique=True)))
    pairs = list(zip(cuts[::2], cuts[1::2], strict=False))
    return [
        Splice(start, end, b"+" * draw(st.integers(shortest, 4)))
        for index, (start, end) in enumerate(pairs)
        if not index or start > pairs[index - 1][1]
    ]


@settings(deadline=None, max_examples=60)
@given(st.data(), st.booleans())
def test_bytes_that_stay_map_to_where_they_were(data: st.DataObject, deletions: bool) -> None:
    """The oracle: every pristine byte is another one, so that it can be found again in the text as it is now."""
    text = bytes(range(100, 100 + data.draw(st.integers(1, 24))))
    layers, now = [], text
    for _ in range(data.draw(st.integers(0, 3))):
        layer = data.draw(splices(len(now), 0 if deletions else 1))
        layers.append(sorted(layer, key=lambda item: (item.start, item.end)))
        now = apply_splices(now, layer)
    for start in range(len(now)):
        for end in range(start + 1, len(now) + 1):
            first, last = to_pristine(layers, start, end)
            kept = [byte - 100 for byte in now[start:end] if byte >= 100]
            assert 0 <= first <= last <= len(text)
            assert not kept or (first <= kept[0] and kept[-1] < last)
            if len(kept) == end - start and not deletions:
                assert (first, last) == (kept[0], kept[-1] + 1)


class TestLedger:
    @staticmethod
    def overlaps(*records: tuple[str, list[Splice]]) -> list[tuple[str, str, str]]:
        ledger = Ledger()
        for step, changes in records:
            ledger.record(step, "f.py", changes)
        return list(ledger.overlaps())

    def test_places_apart(self) -> None:
        assert self.overlaps(("a", [Splice(0, 3, b"x")]), ("b", [Splice(1, 2, b"y")])) == []
        assert self.overlaps(("a", [Splice(0, 0, b"x")]), ("b", [Splice(9, 9, b"y")])) == []

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            (Splice(2, 6, b"abcd"), Splice(4, 8, b"z")),
            (Splice(5, 5, b"new"), Splice(5, 5, b"other")),
            (Splice(5, 5, b"new"), Splice(6, 7, b"")),
            (Splice(2, 6, b"abcd"), Splice(3, 4, b"z")),
            (Splice(2, 6, b"abcd"), Splice(4, 4, b"z")),
        ],
    )
    def test_one_place(self, first: Splice, second: Splice) -> None:
        assert self.overlaps(("a", [first]), ("b", [second])) == [("f.py", "a", "b")]

    def test_a_step_may_touch_a_place_twice(self) -> None:
        assert self.overlaps(("a", [Splice(5, 5, b"1")]), ("a", [Splice(5, 5, b"2")])) == []

    def test_every_pair_in_every_file(self) -> None:
        ledger = Ledger()
        for path in ("f.py", "g.py"):
            for step in ("a", "b", "c"):
                ledger.record(step, path, [Splice(1, 1, step.encode())])
        pairs = [("a", "b"), ("a", "c"), ("b", "c")]
        assert list(ledger.overlaps()) == [(path, *pair) for path in ("f.py", "g.py") for pair in pairs]
        assert ledger.paths == ("f.py", "g.py")


class TestSplices:
    def test_in_any_order(self) -> None:
        assert apply_splices(b"abcdef", [Splice(4, 6, b"Z"), Splice(0, 0, b"-"), Splice(1, 2, b"")]) == b"-acdZ"

    def test_two_insertions_at_one_place_keep_their_order(self) -> None:
        assert apply_splices(b"ab", [Splice(1, 1, b"1"), Splice(1, 1, b"2")]) == b"a12b"

    def test_overlapping_ones_are_refused(self) -> None:
        with pytest.raises(ValueError, match="overlapping changes at byte 2"):
            apply_splices(b"abcdef", [Splice(0, 3, b""), Splice(2, 4, b"")])
