"""Symbols of a module, their two digests."""

from __future__ import annotations

import ast
import io
import sys
import textwrap
import tokenize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtree_patcher.errors import SourceError
from ddtree_patcher.fingerprint import MODULE, Symbol, SymbolKind, fingerprint


def symbols(source: str) -> dict[str, Symbol]:
    found = fingerprint(textwrap.dedent(source).encode())
    assert len({symbol.qualname for symbol in found}) == len(found)
    return {symbol.qualname: symbol for symbol in found}


def hashes(source: str) -> dict[str, str]:
    return {name: symbol.hash for name, symbol in symbols(source).items()}


SAMPLE = '''\
"""A module."""

from __future__ import annotations

import enum
from dataclasses import dataclass

if TYPE_CHECKING:
    Alias = int

try:
    from fast import kernel
except ImportError:
    kernel = None


class Algorithm(enum.Enum):
    """What it is."""

    EAGLE = enum.auto()
    DFLASH = enum.auto()

    def is_dflash(self) -> bool:
        return self == Algorithm.DFLASH


@dataclass(frozen=True)
class Args(Base, metaclass=Meta):
    # How many.
    budget: int = 16
    topk: Optional[int] = None
    name: "str"
    LIMIT = 48

    class Inner:
        @staticmethod
        def run(a, /, b: int = 1, *rest, c, d=(1, 2), **more) -> None:
            def nested():
                return f"{a!r:>{b}} {a=}"

    @property
    def width(self):
        return self.budget + 1

    @width.setter
    def width(self, value):
        self.budget = value - 1


async def serve(port: int = 30_000):
    await something(port, [x for x in range(3)], not_this := 4)


first, (second, *others) = 1, (2, 3)
Args.width = 3
TABLE: dict[str, int] = {"a": 1, **others}
'''


class TestSymbols:
    def test_every_definition_in_source_order(self) -> None:
        found = [(symbol.qualname, symbol.kind.value) for symbol in fingerprint(SAMPLE.encode())]
        assert found == [
            (MODULE, "module"),
            ("Alias", "constant"),
            ("kernel", "constant"),
            ("Algorithm", "class"),
            ("Algorithm.EAGLE", "member"),
            ("Algorithm.DFLASH", "member"),
            ("Algorithm.is_dflash", "method"),
            ("Args", "class"),
            ("Args.budget", "field"),
            ("Args.topk", "field"),
            ("Args.name", "field"),
            ("Args.LIMIT", "constant"),
            ("Args.Inner", "class"),
            ("Args.Inner.run", "method"),
            ("Args.width", "method"),
            ("Args.width#2", "method"),
            ("serve", "function"),
            ("first", "constant"),
            ("second", "constant"),
            ("others", "constant"),
            ("TABLE", "constant"),
        ]

    @pytest.mark.parametrize(
        ("qualname", "signature"),
        [
            (MODULE, ""),
            ("Algorithm", "(enum.Enum)"),
            ("Algorithm.EAGLE", ""),
            ("Args", "(Base, metaclass=Meta)"),
            ("Args.Inner", ""),
            ("Args.budget", "int = ..."),
            ("Args.name", "'str'"),
            ("Args.Inner.run", "(a, /, b: int=1, *rest, c, d=(1, 2), **more) -> None"),
            ("serve", "async (port: int=30000)"),
            ("TABLE", "dict[str, int] = ..."),
        ],
    )
    def test_signature(self, qualname: str, signature: str) -> None:
        assert symbols(SAMPLE)[qualname].signature == signature

    def test_lines_are_those_of_the_keyword(self) -> None:
        source = "\n\n@decorated\n@again\ndef f(): ...\n"
        assert symbols(source)["f"].line == 5

    def test_lines_are_no_part_of_equality(self) -> None:
        assert fingerprint(b"x = 1") == fingerprint(b"\n\nx = 1")

    def test_prose_in_an_annotation_is_not_copied(self) -> None:
        found = symbols("""
            class Args:
                a: A[Optional[str], Arg(help="Some help."), NS("spec")] = None
                b: A[Literal["x", "y"], "Some help."]
                c: Dict[str, "Later"] = {}
        """)
        assert found["Args.a"].signature == "A[Optional[str], ...] = ..."
        assert found["Args.b"].signature == "A[Literal['x', 'y'], ...]"
        assert found["Args.c"].signature == "Dict[str, 'Later'] = ..."

    def test_an_empty_module_is_one_symbol(self) -> None:
        assert [symbol.qualname for symbol in fingerprint(b"")] == [MODULE]

    @pytest.mark.parametrize("base", ["Enum", "enum.IntEnum", "StrEnum", "enum.IntFlag", "BaseEnum"])
    def test_enums_are_known_by_a_base(self, base: str) -> None:
        assert symbols(f"class E({base}):\n    A = 1\n")["E.A"].kind is SymbolKind.MEMBER


class TestDuplicates:
    def test_overloads_and_branches_are_numbered_in_source_order(self) -> None:
        found = symbols("""
            if sys.version_info >= (3, 11):
                def f(new): ...
            elif x:
                def f(middle): ...
            else:
                def f(old): ...
            try:
                class C:
                    def m(self): ...
            except ImportError:
                class C:
                    def m(self, other): ...
            else:
                x = 1
            finally:
                x = 2
            with y:
                x = 3
        """)
        assert [found[name].signature for name in ("f", "f#2", "f#3")] == ["(new)", "(middle)", "(old)"]
        assert found["C#2.m"].signature == "(self, other)"
        assert {"x", "x#2", "x#3"} <= found.keys()
        assert found["f#3"].name == "f"
        assert found["C#2.m"].name == "m"

    def test_names_in_loops_and_functions_are_no_symbols(self) -> None:
        found = symbols("for i in y:\n    z = 1\nwhile q:\n    r = 1\ndef f():\n    s = 1\n")
        assert found.keys() == {MODULE, "f"}


SAME = {
    "comments": ("def f(a):\n    return a\n", "# why\ndef f(a):  # what\n    # how\n    return a\n"),
    "layout": ("def f(a, b=1): return [a, b]\n", "def f(\n    a,\n    b = 1,\n):\n    return [\n  a, b,\n ]\n"),
    "quotes": ("def f(): return 'a' 'b', 0x10, 1_000\n", 'def f(): return "ab", 16, 1000\n'),
    "parentheses": ("def f(a): return (a + 1)\n", "def f(a): return a + 1\n"),
    "docstrings": ('def f():\n    "one"\n    return 1\n', "def f():\n    return 1\n"),
    "pass": ("def f():\n    'one'\n", "def f():\n    pass\n"),
    "prefixes": ("def f(): return u'a'\n", "def f(): return 'a'\n"),
    "f-string parts": ("def f(): return f'a' 'b' f'{c}'\n", "def f(): return f'ab{c}'\n"),
    "type comments": ("def f(a):\n    # type: (int) -> int\n    x = a  # type: int\n", "def f(a):\n    x = a\n"),
}
DIFFERENT = {
    "a default": ("def f(a=1): ...\n", "def f(a=2): ...\n"),
    "True for 1": ("def f(a=1): ...\n", "def f(a=True): ...\n"),
    "1.0 for 1": ("def f(a=1): ...\n", "def f(a=1.0): ...\n"),
    "bytes for text": ("def f(a='a'): ...\n", "def f(a=b'a'): ...\n"),
    "a decorator": ("def f(): ...\n", "@cache\ndef f(): ...\n"),
    "async": ("def f(): ...\n", "async def f(): ...\n"),
    "keyword only": ("def f(a, b): ...\n", "def f(a, *, b): ...\n"),
    "an annotation": ("def f(a): ...\n", "def f(a: int): ...\n"),
    "a default moved to its neighbour": ("def f(*, a=1, b): ...\n", "def f(*, a, b=1): ...\n"),
    "unpacking": ("def f(): return {**a, b: c}\n", "def f(): return {b: c, **a}\n"),
    "an f-string conversion": ("def f(): return f'{a!r}'\n", "def f(): return f'{a!s}'\n"),
    "an f-string specification": ("def f(): return f'{a:>3}'\n", "def f(): return f'{a}'\n"),
    "a nested function": ("def f():\n    def g(): return 1\n", "def f():\n    def g(): return 2\n"),
    "indentation": ("def f():\n    if a:\n        b()\n        c()\n", "def f():\n    if a:\n        b()\n    c()\n"),
}


class TestHash:
    @pytest.mark.parametrize(("before", "after"), SAME.values(), ids=SAME.keys())
    def test_what_only_reads_differently_is_the_same(self, before: str, after: str) -> None:
        old, new = symbols(before)["f"], symbols(after)["f"]
        assert old.hash == new.hash
        assert old.text != new.text

    @pytest.mark.parametrize(("before", "after"), DIFFERENT.values(), ids=DIFFERENT.keys())
    def test_what_means_something_else_differs(self, before: str, after: str) -> None:
        assert hashes(before)["f"] != hashes(after)["f"]

    def test_a_symbol_is_the_same_at_any_depth(self) -> None:
        deep = hashes("class C:\n    if x:\n        def f(self):\n            return 1\n")
        assert deep["C.f"] == hashes("def f(self): return 1")["f"]

    def test_is_what_it_always_was(self) -> None:
        """Committed snapshots rest on these: the same on every supported Python, today and later."""
        assert {name: hashes(SAMPLE)[name] for name in (MODULE, "Algorithm.is_dflash", "Args.Inner.run", "serve")} == {
            MODULE: "e45bb3fce44a26a0",
            "Algorithm.is_dflash": "907c8ebb2efd2f58",
            "Args.Inner.run": "56a25fbdb6c60872",
            "serve": "6ec2574ace895cca",
        }

    @pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters are new in Python 3.12")
    def test_type_parameters_and_aliases(self) -> None:
        assert hashes("def f[T](a): ...")["f"] != hashes("def f(a): ...")["f"]
        assert symbols("type X = int")["X"].kind is SymbolKind.CONSTANT


class TestScopes:
    """A class and a module stand for what their members do not cover."""

    BEFORE = "@d\nclass C(B):\n    x: int = 1\n\n    def f(self):\n        return 1\n"

    @pytest.mark.parametrize(
        ("after", "changed"),
        [
            (BEFORE.replace("return 1", "return 2"), {"C.f"}),
            (BEFORE.replace("x: int = 1", "x: int = 2"), {"C.x"}),
            (BEFORE.replace("(B)", "(A)"), {"C"}),
            (BEFORE.replace("@d", "@e"), {"C"}),
            (BEFORE.replace("    x: ", "    register()\n    x: "), {"C"}),
            ("import z\n" + BEFORE, {MODULE}),
            (BEFORE + "C.y = 1\n", {MODULE}),
            ('"""Text."""\n' + BEFORE, set()),
        ],
    )
    def test_one_edit_is_one_changed_symbol(self, after: str, changed: set[str]) -> None:
        old, new = hashes(self.BEFORE), hashes(after)
        assert {name for name in old if old[name] != new[name]} == changed

    def test_a_new_member_leaves_its_class_as_it_was(self) -> None:
        old = symbols(self.BEFORE)
        new = symbols(self.BEFORE + "\n    # Why there is a g.\n    @e\n    def g(self):\n        pass\n\n\nX = 1\n")
        assert all(old[name] == new[name] for name in old)

    def test_the_condition_around_a_definition_belongs_to_the_module(self) -> None:
        old, new = hashes("if a:\n    x = 1\n"), hashes("if b:\n    x = 1\n")
        assert old["x"] == new["x"]
        assert old[MODULE] != new[MODULE]


class TestText:
    def test_holds_decorators_and_the_comment_block_above(self) -> None:
        plain = symbols("@d\ndef f(): ...\n")["f"]
        assert plain.text != symbols("# Why.\n@d\ndef f(): ...\n")["f"].text
        assert plain == symbols("# Section\n\n@d\ndef f(): ...\n")["f"]

    def test_a_string_that_ends_in_a_hash_line_is_no_comment(self) -> None:
        assert symbols('x = """\n# a"""\ny = 1\n')["y"] == symbols('x = """\n# b"""\ny = 1\n')["y"]

    @pytest.mark.parametrize("newline", ["\r\n", "\r"])
    def test_line_endings_and_a_byte_order_mark_do_not_count(self, newline: str) -> None:
        other = b"\xef\xbb\xbf" + SAMPLE.replace("\n", newline).encode()
        assert fingerprint(other) == fingerprint(SAMPLE.encode())

    def test_a_page_break_is_no_line_ending(self) -> None:
        assert symbols("a = 1\n\x0c\ndef f(): ...\n")["f"] == symbols("a = 1\ndef f(): ...\n")["f"]


class TestRefusals:
    @pytest.mark.parametrize(
        ("data", "line"),
        [
            (b"x = 1\ndef f(:\n", 2),
            (b"x = '\xff'\n", None),
            (b"x = 1\x00\n", None),
            (b"  x = 1\n", 1),
            (b"x = " + b"(" * 5000 + b")" * 5000, None),
            (b"x = " + b"1 + " * 20000 + b"1", None),
        ],
        ids=["syntax", "not UTF-8", "null byte", "indented", "nested too deeply", "too long a sum"],
    )
    def test_not_python(self, data: bytes, line: int | None) -> None:
        with pytest.raises(SourceError) as caught:
            fingerprint(data, path="sglang/srt/a.py")
        assert "sglang/srt/a.py" in caught.value.summary
        assert caught.value.path == "sglang/srt/a.py"
        assert caught.value.remedy
        if line is not None:
            assert caught.value.line == line

    def test_warnings_about_the_source_are_not_ours(self, recwarn: pytest.WarningsRecorder) -> None:
        fingerprint(b"x = '\\d'\ny = 1 is 1\n")
        assert not recwarn.list


# --- properties --------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "run", "DFLASH", "width"])
VALUES = st.one_of(st.integers(), st.booleans(), st.none(), st.text(max_size=4), st.binary(max_size=4)).map(repr)


@st.composite
def modules(draw: st.DrawFn) -> str:
    """Sources of a few definitions, written the way ``ast.unparse`` writes them."""
    blocks: list[str] = []
    for _ in range(draw(st.integers(0, 4))):
        name, value = draw(NAMES), draw(VALUES)
        blocks.append(
            draw(
                st.sampled_from(
                    [
                        f"{name} = {value}",
                        f"{name}: int = {value}",
                        f"import {name}",
                        f"def {name}(x, y={value}, *, z): return [x, {value}, f'{{x}}-{{y!r}}']",
                        f"@{name}\nclass {name}(Enum):\n    {name} = {value}\n    def f(self): return {value}",
                        f"if {name}:\n    {name} = {value}\nelse:\n    def {name}(): return {value}",
                    ]
                )
            )
        )
    return ast.unparse(ast.parse("\n".join(blocks))) + "\n"


def reformatted(source: str, comment: str) -> str:
    """The same tokens with blanks around brackets and operators, and a comment after every logical line."""
    result: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NEWLINE:
            result.append(f"  # {comment}\n\n")
        elif token.type == tokenize.INDENT:
            result.append("")
        elif token.type == tokenize.OP and token.string in "()[]=,":
            result.append(f" {token.string} ")
        elif token.type not in (tokenize.NL, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.COMMENT):
            start_of_line = not source.splitlines()[token.start[0] - 1][: token.start[1]].strip()
            result.append(" " * token.start[1] if start_of_line else " ")
            result.append(token.string)
    return "".join(result)


@given(modules(), st.sampled_from(["why", "# how", "type: ignore"]))
def test_reformatting_changes_no_hash(source: str, comment: str) -> None:
    if sys.version_info >= (3, 12) and "f'" in source:
        source = source.replace("f'{x}-{y!r}'", "x")  # tokenised in parts there; blanks would land inside
    other = reformatted(source, comment)
    assert [(one.qualname, one.signature, one.hash) for one in fingerprint(source.encode())] == [
        (one.qualname, one.signature, one.hash) for one in fingerprint(other.encode())
    ]


@given(modules(), st.sampled_from(["\n", "\r\n"]), st.integers(0, 3))
def test_a_module_is_the_same_further_down_and_with_other_line_endings(source: str, newline: str, down: int) -> None:
    other = ("\n" * down + source).replace("\n", newline).encode()
    assert fingerprint(other) == fingerprint(source.encode())
