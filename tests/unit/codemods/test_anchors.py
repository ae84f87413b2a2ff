"""Anchors: the one place, or the places that came near."""

from __future__ import annotations

import ast

import pytest

from ddtree_patcher.codemods import Anchor, NotFound, Source
from ddtree_patcher.codemods.anchors import find_expression, find_scope, find_statement, holds_statements
from ddtree_patcher.codemods.pattern import statements
from ddtree_patcher.model import StepOutcome

SAMPLE = Source.parse(
    b"""\
x = 1
class Args:
    def run(self):
        if a:
            call(1, 2)
        elif b:
            call(3)
        call(4)

    def stop(self): ...
def run():
    call(5)
    return helper(call(6))
if w:
    def twice(): ...
else:
    def twice(): ...
"""
)


def found(anchor: Anchor) -> int:
    statement = find_statement(SAMPLE, anchor)
    assert isinstance(statement, ast.stmt), statement
    return statement.lineno


def missing(anchor: Anchor) -> tuple[StepOutcome, list[int]]:
    answer = find_statement(SAMPLE, anchor)
    assert isinstance(answer, NotFound)
    return answer.outcome, [item.line for item in answer.candidates]


class TestScope:
    @pytest.mark.parametrize(("name", "line"), [("Args", 2), ("Args.run", 3), ("run", 11), ("Args.stop", 10)])
    def test_by_dotted_name(self, name: str, line: int) -> None:
        scope = find_scope(SAMPLE, name)
        assert not isinstance(scope, NotFound | ast.Module) and scope.lineno == line

    def test_the_module(self) -> None:
        assert find_scope(SAMPLE, "") is SAMPLE.tree

    @pytest.mark.parametrize(
        ("name", "outcome", "lines"),
        [
            ("twice", StepOutcome.ANCHOR_AMBIGUOUS, [15, 17]),
            ("stop", StepOutcome.ANCHOR_MISSING, [10]),
            ("Other.run", StepOutcome.ANCHOR_MISSING, [3, 11]),
            ("Args.runs", StepOutcome.ANCHOR_MISSING, [3, 10, 2]),
            ("zzzz", StepOutcome.ANCHOR_MISSING, []),
        ],
    )
    def test_not_found(self, name: str, outcome: StepOutcome, lines: list[int]) -> None:
        answer = find_scope(SAMPLE, name)
        assert isinstance(answer, NotFound)
        assert (answer.outcome, [item.line for item in answer.candidates]) == (outcome, lines)


class TestStatement:
    @pytest.mark.parametrize(
        ("anchor", "line"),
        [
            (Anchor("x = 1"), 1),
            (Anchor("call(4)"), 8),
            (Anchor("call(1, ...)"), 5),
            (Anchor("call(...)", scope="Args.run", within="if a: ..."), None),
            (Anchor("call(...)", scope="Args.run", within="if b: ..."), 7),
            (Anchor("call(3)", scope="Args.run", within="if a: ..."), 7),
            (Anchor("call(...)", scope="run"), 12),
            (Anchor("if a: ...", scope="Args"), 4),
        ],
    )
    def test_exactly_one(self, anchor: Anchor, line: int | None) -> None:
        if line is None:
            assert missing(anchor) == (StepOutcome.ANCHOR_AMBIGUOUS, [5, 7])
        else:
            assert found(anchor) == line

    @pytest.mark.parametrize(
        ("anchor", "outcome", "lines"),
        [
            (Anchor("call(...)"), StepOutcome.ANCHOR_AMBIGUOUS, [5, 7, 8, 12]),
            (Anchor("call(9)"), StepOutcome.ANCHOR_MISSING, [7, 8, 12, 5]),
            (Anchor("call(9)", scope="run"), StepOutcome.ANCHOR_MISSING, [12]),
            (Anchor("call(6)"), StepOutcome.ANCHOR_MISSING, [7, 8, 12, 5]),
            (Anchor("call(1)", scope="nowhere"), StepOutcome.ANCHOR_MISSING, []),
            (Anchor("call(1)", scope="Args.run", within="if c: ..."), StepOutcome.ANCHOR_MISSING, [4, 6]),
            (Anchor("import torch"), StepOutcome.ANCHOR_MISSING, []),
        ],
    )
    def test_none_or_several(self, anchor: Anchor, outcome: StepOutcome, lines: list[int]) -> None:
        assert missing(anchor) == (outcome, lines)

    def test_at_most_five_near_misses_the_nearest_first(self) -> None:
        source = Source.parse(b"".join(b"call(%d)\n" % (20 + number) for number in range(9)) + b"call(1)\n")
        answer = find_statement(source, Anchor("call(2)"))
        assert isinstance(answer, NotFound)
        scores = [item.score for item in answer.candidates]
        assert len(scores) == 5 and scores == sorted(scores, reverse=True) and max(scores) < 1

    def test_in_words(self) -> None:
        anchor = Anchor("if a:\n    b", scope="C.m", within="for x in y: ...")
        assert str(anchor) == "`if a:` inside `for x in y: ...` in C.m"
        assert str(Anchor("x = 1")) == "`x = 1`"


class TestExpression:
    def test_exactly_one(self) -> None:
        node = find_expression(SAMPLE, "run", "helper(...)")
        assert isinstance(node, ast.expr) and node.lineno == 13

    def test_only_where_it_is_usable(self) -> None:
        answer = find_expression(SAMPLE, "", "x", lambda source, node: isinstance(node.ctx, ast.Load))  # type: ignore[attr-defined]
        assert isinstance(answer, NotFound) and answer.outcome is StepOutcome.ANCHOR_MISSING

    @pytest.mark.parametrize(
        ("scope", "text", "outcome", "lines"),
        [
            ("run", "call(...)", StepOutcome.ANCHOR_AMBIGUOUS, [12, 13]),
            ("run", "call(7)", StepOutcome.ANCHOR_MISSING, [12, 13]),
            ("nowhere", "x", StepOutcome.ANCHOR_MISSING, []),
        ],
    )
    def test_none_or_several(self, scope: str, text: str, outcome: StepOutcome, lines: list[int]) -> None:
        answer = find_expression(SAMPLE, scope, text)
        assert isinstance(answer, NotFound)
        assert (answer.outcome, [item.line for item in answer.candidates]) == (outcome, lines)


class TestHolds:
    @pytest.mark.parametrize(
        ("code", "line"),
        [
            ("call( 4 )", 8),
            ("call(5)\nreturn helper(call(6))", 12),
            ("call(4)\ncall(5)", 0),
            ("call(9)", 0),
            ("call(3)", 7),
        ],
    )
    def test_one_after_the_other_in_one_block(self, code: str, line: int) -> None:
        assert holds_statements(SAMPLE, SAMPLE.tree, statements(code)) == line
