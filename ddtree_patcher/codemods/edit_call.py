"""``edit_call``: one keyword argument of a call is added, gets another value, or is dropped."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import libcst as cst

from ..model import StepOutcome
from . import pattern
from .anchors import candidate, find_expression
from .region import Region, in_place_of, parse_expression
from .result import AlreadySo, Found, Location, NotFound
from .source import Source

_Gap: TypeAlias = cst.BaseParenthesizableWhitespace


@dataclass(frozen=True, slots=True)
class EditCall:
    """In ``scope``, the one call of the shape ``call`` passes ``argument`` as ``new`` in place of ``old``.

    Without ``old`` the argument is added, as the last one; without ``new`` it is dropped, with the comments that are
    about it. A value that is neither is refused, and so is an argument to be added where the call has ``**``, which may
    hold it.
    """

    path: str  # the file, relative to the folder that holds the package
    scope: str  # the dotted definition that the call is in; empty: the module
    call: str  # the call, as an expression pattern: ``RadixAttention(...)`` whatever its arguments
    argument: str  # the keyword
    old: str = ""  # the value that it has, as an expression pattern; "..." takes any; empty: it is not there
    new: str = ""  # the value that it gets, as an expression; empty: it is dropped

    def __post_init__(self) -> None:
        if not self.old and not self.new:
            raise ValueError(f"edit_call of {self.argument!r} has neither an old nor a new value")

    def locate(self, source: Source) -> Location:
        call = find_expression(source, self.scope, self.call)
        if isinstance(call, NotFound):
            return call
        assert isinstance(call, ast.Call), f"{self.call} is no pattern of a call"
        there = next((item for item in call.keywords if item.arg == self.argument), None)
        value = there.value if there is not None else None
        if self._is_so(value):
            return AlreadySo(call.lineno if value is None else value.lineno)
        if refusal := self._refusal(source, call, value):
            return refusal
        region = Region.around(source, call)
        return Found(region.replace(*self._change(source, region, call, value)), call.lineno)

    def _is_so(self, value: ast.expr | None) -> bool:
        if value is None or not self.new:
            return value is None and not self.new
        return pattern.same(pattern.expression(self.new), value)

    def _refusal(self, source: Source, call: ast.Call, value: ast.expr | None) -> NotFound | None:
        where = f"{self.call} in {self.scope}" if self.scope else self.call
        if not self.old:
            if value is not None:
                wanted = f"{self.argument}={self.new}, or no {self.argument}, in {where}"
                return NotFound(StepOutcome.HALF_UPSTREAMED, wanted, (candidate(source, value),))
            if any(item.arg is None for item in call.keywords):
                return NotFound(StepOutcome.ANCHOR_MISSING, f"{where} without **", (candidate(source, call),))
        elif value is None or not pattern.matches(pattern.expression(self.old), value):
            near = candidate(source, call if value is None else value)
            return NotFound(StepOutcome.ANCHOR_MISSING, f"{self.argument}={self.old} in {where}", (near,))
        return None

    def _change(
        self, source: Source, region: Region, call: ast.Call, value: ast.expr | None
    ) -> tuple[cst.CSTNode, cst.CSTNode]:
        """The node that is replaced, and what takes its place."""
        if value is not None and self.new:
            node = region.find(cst.BaseExpression, value)  # type: ignore[type-abstract]
            return node, in_place_of(node, parse_expression(source, self.new))
        holder = region.find(cst.Call, call)
        if self.new:
            return holder, _added(holder, self.argument, parse_expression(source, self.new))
        return holder, _dropped(holder, self.argument)

    def symbols(self) -> tuple[str, ...]:
        return (self.scope,)


def _added(call: cst.Call, name: str, value: cst.BaseExpression) -> cst.Call:
    """One more argument at the end, separated as the others are; a comment behind the last one stays there."""
    tight = cst.AssignEqual(whitespace_before=cst.SimpleWhitespace(""), whitespace_after=cst.SimpleWhitespace(""))
    new = cst.Arg(value, keyword=cst.Name(name), equal=tight)
    if not call.args:
        return call.with_changes(args=[new])
    *before, last = call.args
    gap = _gaps(call)[1] if before else _of_one(call)
    if isinstance(gap, cst.ParenthesizedWhitespace):
        gap = gap.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[])
    closing = _closing(call)
    if isinstance(gap, cst.ParenthesizedWhitespace) and isinstance(closing, cst.ParenthesizedWhitespace):
        gap = gap.with_changes(first_line=closing.first_line)
        closing = closing.with_changes(first_line=cst.TrailingWhitespace())
    trailing = isinstance(last.comma, cst.Comma)
    last = last.with_changes(comma=cst.Comma(whitespace_after=gap), whitespace_after_arg=cst.SimpleWhitespace(""))
    return call.with_changes(args=[*before, last, _closed(new, closing, trailing=trailing)])


def _dropped(call: cst.Call, name: str) -> cst.Call:
    """Without an argument, and without the comments behind it and directly above it; all others stay."""
    place = next(at for at, item in enumerate(call.args) if item.keyword is not None and item.keyword.value == name)
    args = [*call.args[:place], *call.args[place + 1 :]]
    if not args:
        return call.with_changes(args=[], whitespace_before_args=cst.SimpleWhitespace(""))
    gaps = [*_gaps(call), _closing(call)]
    gap = _merged(gaps[place], gaps[place + 1])
    if place == len(args):  # it was the last one
        gap = gap if _has_comment(gaps[place]) else gaps[place + 1]
        trailing = isinstance(call.args[-1].comma, cst.Comma)
        return call.with_changes(args=[*args[:-1], _closed(args[-1], gap, trailing=trailing)])
    if place == 0:
        return call.with_changes(args=args, whitespace_before_args=gap)
    comma = args[place - 1].comma
    assert isinstance(comma, cst.Comma)
    args[place - 1] = args[place - 1].with_changes(comma=comma.with_changes(whitespace_after=gap))
    return call.with_changes(args=args)


def _gaps(call: cst.Call) -> list[_Gap]:
    """What stands before each argument."""
    return [call.whitespace_before_args, *_behind(call.args[:-1])]


def _behind(args: Sequence[cst.Arg]) -> list[_Gap]:
    return [item.comma.whitespace_after for item in args if isinstance(item.comma, cst.Comma)]


def _of_one(call: cst.Call) -> _Gap:
    """What would stand between the arguments of a call that has one."""
    gap = call.whitespace_before_args
    return gap if isinstance(gap, cst.ParenthesizedWhitespace) else cst.SimpleWhitespace(" ")


def _closing(call: cst.Call) -> _Gap:
    """What stands before the closing parenthesis."""
    last = call.args[-1]
    return last.comma.whitespace_after if isinstance(last.comma, cst.Comma) else last.whitespace_after_arg


def _closed(arg: cst.Arg, gap: _Gap, *, trailing: bool) -> cst.Arg:
    """The last argument, with what stands before the closing parenthesis, with a comma where there was one."""
    if trailing:
        return arg.with_changes(comma=cst.Comma(whitespace_after=gap), whitespace_after_arg=cst.SimpleWhitespace(""))
    return arg.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=gap)


def _has_comment(gap: _Gap) -> bool:
    return isinstance(gap, cst.ParenthesizedWhitespace) and gap.first_line.comment is not None


def _merged(before: _Gap, after: _Gap) -> _Gap:
    """One gap of the two around what is dropped: the end of the line above, and what belongs to what comes next."""
    if not isinstance(before, cst.ParenthesizedWhitespace):
        return after if isinstance(after, cst.ParenthesizedWhitespace) else before
    if not isinstance(after, cst.ParenthesizedWhitespace):
        return before.with_changes(empty_lines=[])
    return after.with_changes(first_line=before.first_line)
