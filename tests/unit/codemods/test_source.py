"""The bytes of a file with an index of its statements; and what cannot be edited safely."""

from __future__ import annotations

import ast

import pytest

from ddtree_patcher.codemods import Source
from ddtree_patcher.codemods.source import statements_in
from ddtree_patcher.errors import SourceError
from ddtree_patcher.model import ExitCode

SAMPLE = """\
import a

if x:
    class A:
        def m(self): ...

        class B:
            async def n(self): ...
elif y:
    def f(): ...
else:
    try:
        def g(): ...
    except E:
        def h(): ...
    finally:
        with z:
            class C: ...

match x:
    case 1:
        def k(): ...

for a in b:
    def f(): ...
"""


class TestRefused:
    @pytest.mark.parametrize(
        ("data", "words"),
        [
            (b"x = 1\0\n", "NUL"),
            (b"x = '\xe9'\n", "not valid UTF-8"),
            (b"x = '\xff\xfe'\n", "not valid UTF-8"),
            ("x = 1\n".encode("utf-16"), "NUL"),
            ("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"), "iso-8859-1"),
            (b"# -*- coding: latin-1 -*-\nx = 1\n", "iso-8859-1"),
            (b"# coding: no-such-thing\n", "unknown encoding"),
            (b"\xef\xbb\xbf# coding: latin-1\n", "utf-8"),
            (b"def f(:\n", "not valid Python"),
            (b"if 1:\nx = 1\n", "not valid Python"),
            (b"if 1:\n\tx\n        y\n", "not valid Python"),
        ],
    )
    def test_with_the_files_name_and_a_remedy(self, data: bytes, words: str) -> None:
        with pytest.raises(SourceError, match=words) as caught:
            Source.parse(data, "sglang/f.py")
        error = caught.value
        assert "sglang/f.py" in error.summary and error.path == "sglang/f.py" and error.remedy
        assert (error.code, error.exit_code) == ("not_roundtrippable", ExitCode.CONFLICT)

    def test_with_the_line_of_a_syntax_error(self) -> None:
        with pytest.raises(SourceError) as caught:
            Source.parse(b"x = 1\ny = (\nz = 2\n")
        assert caught.value.line == 2


class TestAccepted:
    @pytest.mark.parametrize("data", [b"", b"\n", b"# x", b"\xef\xbb\xbf", b"\xef\xbb\xbfx = 1\n"])
    def test_with_or_without_content(self, data: bytes) -> None:
        source = Source.parse(data)
        assert source.data == data
        assert b"".join(source.line(number + 1) for number in range(source.line_count)) == data.removeprefix(
            b"\xef\xbb\xbf"
        )

    @pytest.mark.parametrize("cookie", ["utf-8", "utf8", "UTF-8"])
    def test_with_a_cookie_that_says_utf_8(self, cookie: str) -> None:
        assert Source.parse(f"# coding: {cookie}\nx = 'é'\n".encode()).line_count == 2


class TestLines:
    @pytest.mark.parametrize(
        ("data", "newline", "starts"),
        [
            (b"", b"\n", [0]),
            (b"a", b"\n", [0, 1]),
            (b"a\nb\n", b"\n", [0, 2, 4]),
            (b"a\r\nb\n", b"\r\n", [0, 3, 5]),
            (b"a\rb", b"\r", [0, 2, 3]),
            (b"\xef\xbb\xbfa\nb", b"\n", [3, 5, 6]),
            (b"a\n\x0cb\n", b"\n", [0, 2, 5]),
            ("a = '\u2028'\nb\n".encode(), b"\n", [0, 10, 12]),
        ],
    )
    def test_begin_where_python_says(self, data: bytes, newline: bytes, starts: list[int]) -> None:
        source = Source.parse(data)
        assert (source.newline, source.line_starts) == (newline, starts)

    def test_the_bytes_of_a_node(self) -> None:
        source = Source.parse("\ufeffé = '😀'; f(é)\nclass A:\n    x = [\n        1]\n".encode())
        texts = [source.text_of(node).decode() for node in statements_in(source.tree)]
        assert texts == ["é = '😀'", "f(é)", "class A:\n    x = [\n        1]", "x = [\n        1]"]


class TestIndent:
    @pytest.mark.parametrize(
        ("text", "indent"),
        [
            ("x = 1\n", "    "),
            ("def f(): pass\n", "    "),
            ("class A:\n  x = 1\n", "  "),
            ("def f():\n\tpass\n", "\t"),
            ("if x:\n        y\nclass A:\n   def f(self):\n          pass\n", "   "),
            ("def f(): pass\nclass A:\n  x = 1\n", "  "),
            ("def f():\n\f    pass\n", "    "),
            ("class A:\n\f  x = 1\nclass B:\n   y = 1\n", "   "),
        ],
    )
    def test_is_that_of_the_first_indented_body(self, text: str, indent: str) -> None:
        assert Source.parse(text.encode()).indent == indent


class TestDefinitions:
    def test_by_dotted_name_through_every_kind_of_block(self) -> None:
        found = Source.parse(SAMPLE.encode()).definitions
        assert {name: [node.lineno for node in nodes] for name, nodes in found.items()} == {
            "A": [4],
            "A.m": [5],
            "A.B": [7],
            "A.B.n": [8],
            "f": [10, 25],
            "g": [13],
            "h": [15],
            "C": [18],
            "k": [22],
        }

    def test_inside_functions_too(self) -> None:
        assert list(Source.parse(b"def f():\n    class A:\n        def m(self): ...\n").definitions) == [
            "f",
            "f.A",
            "f.A.m",
        ]


class TestAncestors:
    def test_innermost_first_the_module_last(self) -> None:
        source = Source.parse(b"class A:\n    @dec(x)\n    def m(self, a=1):\n        if a: return f(a)\n")
        call = next(node for node in ast.walk(source.tree) if isinstance(node, ast.Call) and node.lineno == 4)
        kinds = [type(node).__name__ for node in source.ancestors(call)]
        assert kinds == ["Return", "If", "FunctionDef", "ClassDef", "Module"]

    @pytest.mark.parametrize("name", ["x", "a"])
    def test_of_what_stands_in_decorators_and_defaults(self, name: str) -> None:
        source = Source.parse(b"class A:\n    @dec(x)\n    def m(self, b=a): ...\n")
        node = next(item for item in ast.walk(source.tree) if isinstance(item, ast.Name) and item.id == name)
        kinds = [type(item).__name__ for item in source.ancestors(node)]
        assert kinds[-3:] == ["FunctionDef", "ClassDef", "Module"]

    def test_of_every_node_of_a_file(self) -> None:
        source = Source.parse(SAMPLE.encode() + b"x = f'{a!r:>{b}}'; y = [z for z in x if (yield)]\n" * 2)
        parents = {child: node for node in ast.walk(source.tree) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(source.tree):
            if isinstance(node, ast.stmt | ast.expr):
                chain = source.ancestors(node)
                for inner, outer in zip([node, *chain], chain, strict=False):
                    assert parents[inner] is outer
