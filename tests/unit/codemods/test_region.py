"""Regions: the lines of one statement, refused unless libcst reproduces them byte for byte."""

from __future__ import annotations

import ast

import libcst as cst
import pytest

from ddtree_patcher.codemods import (
    AddEnumMember,
    AddMethod,
    Anchor,
    EditCondition,
    EnsureImport,
    ExtendLiteral,
    InsertAfter,
    InsertBefore,
    ReplaceExpression,
    Source,
)
from ddtree_patcher.codemods.region import Region, render
from ddtree_patcher.errors import SourceError
from ddtree_patcher.model import ExitCode

CLASSIC = b"class A:\r    x = 1\r    def g(self):\r        if a: f(['A'])\r        return b\rfrom m import n\r"
CODEMODS = [
    AddEnumMember("f.py", "A", "y", after="x"),
    AddMethod("f.py", "A", "def h(self): ...\n", after="g"),
    EnsureImport("f.py", "m", "o"),
    InsertAfter("f.py", Anchor("return b"), "h()\n"),
    InsertBefore("f.py", Anchor("return b"), "h()\n"),
    ReplaceExpression("f.py", "A.g", "b", "c"),
    EditCondition("f.py", "A.g", "a", "c"),
    ExtendLiteral("f.py", Anchor("f(...)"), "'B'", beside="'A'"),
]


class TestRefused:
    @pytest.mark.parametrize("codemod", CODEMODS, ids=lambda item: type(item).__name__)
    def test_lines_that_end_in_a_carriage_return_alone(self, codemod: InsertAfter) -> None:
        """libcst reads such a file and prints it differently: a real input that does not round-trip."""
        with pytest.raises(SourceError, match=r"f\.py does not round-trip through libcst") as caught:
            codemod.locate(Source.parse(CLASSIC, "f.py"))
        assert caught.value.path == "f.py" and caught.value.line and "Nothing was written" in caught.value.remedy
        assert caught.value.exit_code is ExitCode.CONFLICT

    def test_a_print_that_differs_by_one_byte(self, monkeypatch: pytest.MonkeyPatch) -> None:
        source = Source.parse(b"x = 1\ny = 2\n", "f.py")
        monkeypatch.setattr(cst.Module, "bytes", property(lambda module: b"y = 2 \n"))
        with pytest.raises(SourceError, match="line 2: libcst prints it differently"):
            Region.around(source, source.tree.body[1])

    def test_what_libcst_cannot_parse(self, monkeypatch: pytest.MonkeyPatch) -> None:
        source = Source.parse(b"x = 1\n", "f.py")
        real = cst.parse_module
        monkeypatch.setattr("ddtree_patcher.codemods.region.cst.parse_module", lambda *args, **kwargs: real("x = ("))
        with pytest.raises(SourceError, match="libcst cannot parse it"):
            Region.around(source, source.tree.body[0])

    def test_statements_that_share_their_lines(self) -> None:
        source = Source.parse(b"x = 1; y = 2\n")
        with pytest.raises(SourceError, match="share lines"):
            Region.around(source, source.tree.body[0])


class TestAround:
    @pytest.mark.parametrize(
        ("text", "first", "last"),
        [
            ("a\nX = 1  # c\nb\n", 2, 2),
            ("a\nX = [\n  1,\n]\nb\n", 2, 4),
            ("if a:\n    X = 1\n    y\n", 2, 2),
            ("if a: X = 1\n", 1, 1),
            ("if a:\n    y; X = 1\n    z\nb\n", 1, 3),
            ("if q:\n    a\nelif X:\n    b\nc\n", 1, 4),
            ("a\n@d\n@e(\n  X)\ndef f(): pass\n", 2, 5),
            ("class A:\n    def f(self, a=X): pass\n", 2, 2),
        ],
    )
    def test_the_smallest_statement_with_lines_of_its_own(self, text: str, first: int, last: int) -> None:
        source = Source.parse(text.encode())
        node = next(item for item in ast.walk(source.tree) if isinstance(item, ast.Name) and item.id == "X")
        region = Region.around(source, node)
        assert (region.first_line, source.line_starts.index(region.end)) == (first, last)
        assert source.data[region.start : region.end] == region.module.bytes[len(region.prefix) :]

    @pytest.mark.parametrize("text", ["x = f(x, (y))\n", "if a:\n\tx = 'é😀', f(x, (y))  # é\n", "\ufefff(x, (y))\n"])
    def test_finds_the_node_at_the_place_of_another(self, text: str) -> None:
        source = Source.parse(text.encode())
        node = next(item for item in ast.walk(source.tree) if isinstance(item, ast.Call))
        region = Region.around(source, node)
        assert region.module.code_for_node(region.find(cst.Call, node)) == "f(x, (y))"

    def test_no_node_there(self) -> None:
        source = Source.parse(b"x = f(1)\n")
        statement = source.tree.body[0]
        assert isinstance(statement, ast.Assign)
        with pytest.raises(SourceError, match="no Lambda there"):
            Region.around(source, statement).find(cst.Lambda, statement.value)


class TestRender:
    @pytest.mark.parametrize(
        ("like", "margin", "rendered"),
        [
            ("", "", "if a:\n    # é\n    b\n\nc\n"),
            ("class A:\n  x = 1\n", "  ", "  if a:\n    # é\n    b\n\n  c\n"),
            ("class A:\n\tx = 1\n", "\t", "\tif a:\n\t\t# é\n\t\tb\n\n\tc\n"),
            ("x = 1\r\n", "", "if a:\r\n    # é\r\n    b\r\n\r\nc\r\n"),
        ],
    )
    def test_as_the_file_would_write_it(self, like: str, margin: str, rendered: str) -> None:
        code = "\nif a:\n    # é\n    b\n\nc\n\n"
        assert render(Source.parse(like.encode()), code, margin).decode() == rendered

    def test_strings_keep_characters_that_only_look_like_newlines(self) -> None:
        code = "x = 'a\u2028b\x0cc'\n"
        assert render(Source.parse(b"y = 1\r\n"), code, "    ").decode() == "    x = 'a\u2028b\x0cc'\r\n"

    def test_comments_at_the_top_come_along(self) -> None:
        assert render(Source.parse(b""), "# one\n\n# two\nx = 1\n", "    ") == b"    # one\n\n    # two\n    x = 1\n"
