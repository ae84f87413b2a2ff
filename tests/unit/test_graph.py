"""The order of steps, on graphs of every shape."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddtree_patcher import graph
from ddtree_patcher.errors import PatchsetError, UsageError
from ddtree_patcher.model import ExitCode


def requires(text: str) -> dict[str, tuple[str, ...]]:
    """``"a: b c, b:"``: a requires b and c, b nothing."""
    pairs = (item.partition(":") for item in text.split(","))
    return {name.strip(): tuple(needed.split()) for name, _, needed in pairs}


def groups(text: str) -> set[frozenset[str]]:
    return set(graph.connected(requires(text)))


class TestGroups:
    def test_requirements_join_whichever_way_they_go(self) -> None:
        assert groups("a:, b:, c: a b, d:, e: d, f:") == {frozenset("abc"), frozenset("de"), frozenset("f")}

    def test_what_is_joined_late_is_one_group(self) -> None:
        assert groups("a:, b: a, c:, d: c, e: b d") == {frozenset("abcde")}

    def test_none_of_none(self) -> None:
        assert graph.connected({}) == ()


class TestEmpty:
    def test_has_no_order(self) -> None:
        assert graph.order({}) == ()
        assert graph.closure({}, []) == frozenset()
        assert graph.select({}, (), "") == ()


class TestLine:
    LINE = requires("d: c, c: b, b: a, a:")

    def test_is_walked_from_its_root(self) -> None:
        assert graph.order(self.LINE) == ("a", "b", "c", "d")

    def test_closure_is_everything_below(self) -> None:
        assert graph.closure(self.LINE, ["c"]) == {"a", "b", "c"}

    def test_any_two_are_ordered(self) -> None:
        assert graph.ordered(self.LINE, "a", "d") and graph.ordered(self.LINE, "d", "a")

    def test_missing_chain_goes_down_to_the_deepest_that_is_missing(self) -> None:
        assert graph.missing_chain(self.LINE, "d", {"d"}) == ("d", "c", "b", "a")
        assert graph.missing_chain(self.LINE, "d", {"d", "c"}) == ("d", "c", "b", "a")
        assert graph.missing_chain(self.LINE, "d", {"d", "a"}) == ("d", "c", "b")
        assert graph.missing_chain(self.LINE, "d", {"a", "b", "c"}) == ()


class TestDiamond:
    DIAMOND = requires("top: left right, left: base, right: base, base:")

    def test_each_once_and_after_what_it_requires(self) -> None:
        assert graph.order(self.DIAMOND) == ("base", "left", "right", "top")

    def test_its_sides_are_not_ordered(self) -> None:
        assert not graph.ordered(self.DIAMOND, "left", "right")
        assert graph.ordered(self.DIAMOND, "left", "top")

    def test_closure(self) -> None:
        assert graph.closure(self.DIAMOND, ["left", "right"]) == {"left", "right", "base"}


class TestTwoWaysDown:
    WAYS = requires("top: short long, short:, long: longer, longer: longest, longest:")

    def test_the_longest_chain_of_what_is_missing_is_told(self) -> None:
        assert graph.missing_chain(self.WAYS, "top", {"top"}) == ("top", "long", "longer", "longest")
        assert graph.missing_chain(self.WAYS, "top", {"top", "long", "longer", "longest"}) == ("top", "short")

    def test_also_below_the_first_step(self) -> None:
        needs = {"above": ("top",), **self.WAYS}
        assert graph.missing_chain(needs, "above", {"above"}) == ("above", "top", "long", "longer", "longest")


class TestIslands:
    def test_keep_the_order_that_they_were_given_in(self) -> None:
        assert graph.order(requires("z:, a:, m: q, q:")) == ("z", "a", "q", "m")

    def test_are_not_ordered(self) -> None:
        assert not graph.ordered(requires("a:, b:"), "a", "b")


class TestCycle:
    @pytest.mark.parametrize(
        ("text", "circle"),
        [("a: a", "a -> a"), ("a: b, b: a", "a -> b -> a"), ("x: a, a: b, b: c, c: a", "a -> b -> c -> a")],
    )
    def test_is_refused_and_shown(self, text: str, circle: str) -> None:
        with pytest.raises(PatchsetError, match=f"{circle}$") as caught:
            graph.order(requires(text))
        assert caught.value.exit_code is ExitCode.USAGE and caught.value.code == "patchset_invalid"


class TestUnknown:
    def test_requirement_is_refused_with_the_names_that_exist(self) -> None:
        with pytest.raises(PatchsetError, match="'a' requires 'ghost'") as caught:
            graph.order(requires("a: b ghost, b:"))
        assert "a, b" in caught.value.remedy


class TestSelect:
    LINE = requires("a:, b: a, c: b, d: a")

    @pytest.mark.parametrize(
        ("steps", "through", "selected"),
        [
            ((), "", ("a", "b", "c", "d")),
            ((), "b", ("a", "b")),
            ((), "a", ("a",)),
            (("d", "a"), "", ("a", "d")),
            (("d",), "b", ("a", "b", "d")),
            (("a", "a"), "", ("a",)),
        ],
    )
    def test_in_order_and_whole(self, steps: tuple[str, ...], through: str, selected: tuple[str, ...]) -> None:
        assert graph.select(self.LINE, steps, through) == selected

    @pytest.mark.parametrize(
        ("steps", "chain"),
        [(("b",), "b requires a"), (("a", "c"), "c requires b"), (("c",), "c requires b requires a")],
    )
    def test_refuses_a_gap_with_its_chain(self, steps: tuple[str, ...], chain: str) -> None:
        with pytest.raises(UsageError, match=f"{chain}$") as caught:
            graph.select(self.LINE, steps, "")
        assert f"--through {steps[-1]}" in caught.value.remedy

    @pytest.mark.parametrize(("steps", "through"), [(("ghost",), ""), ((), "ghost")])
    def test_refuses_a_name_that_does_not_exist(self, steps: tuple[str, ...], through: str) -> None:
        with pytest.raises(UsageError, match="no step 'ghost'") as caught:
            graph.select(self.LINE, steps, through)
        assert "a, b, c, d" in caught.value.remedy


@st.composite
def acyclic(draw: st.DrawFn) -> dict[str, tuple[str, ...]]:
    names = draw(st.permutations([f"s{number}" for number in range(draw(st.integers(1, 8)))]))
    edges = {
        name: draw(st.lists(st.sampled_from(names[:index]), unique=True)) if index else []
        for index, name in enumerate(names)
    }
    return {name: tuple(edges[name]) for name in draw(st.permutations(names))}


@settings(deadline=None, max_examples=100)
@given(acyclic())
def test_any_graph_without_a_cycle(needs: dict[str, tuple[str, ...]]) -> None:
    order = graph.order(needs)
    assert sorted(order) == sorted(needs)
    assert all(order.index(needed) < order.index(name) for name, more in needs.items() for needed in more)
    for name in needs:
        selected = graph.select(needs, (), name)
        assert graph.closure(needs, selected) == set(selected)
        assert graph.missing_chain(needs, name, graph.closure(needs, [name])) == ()
