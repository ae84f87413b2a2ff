"""Patterns: code that describes the shape of code."""

from __future__ import annotations

import ast

import pytest

from ddtree_patcher.codemods import pattern


def node(code: str) -> ast.AST:
    (statement,) = ast.parse(code).body
    return statement.value if isinstance(statement, ast.Expr) else statement


def wanted(code: str) -> ast.AST:
    statement = pattern.statement(code)
    return statement.value if isinstance(statement, ast.Expr) else statement


@pytest.mark.parametrize(
    ("shape", "code"),
    [
        ("x = 1", "x   =  0x1  # é"),
        ("f('a')", 'f( "a", )'),
        ("x = ...", "x = f(1)[2]"),
        ("f(...)", "f()"),
        ("f(...)", "f(1, *a, b=2, **c)"),
        ("f(1, ...)", "f(1, 2, c=3)"),
        ("f(..., b=1)", "f(2, a=0, b=1)"),
        ("f(..., b=...)", "f(b=g(1))"),
        ("x[...]", "x[1:2]"),
        ("if a: ...", "if a:\n    b\n    c\nelse:\n    d"),
        ("if a: ...", "if a: pass\nelif b: pass"),
        ("if ...: ...", "if f(1) and g: pass"),
        ("for x in ...: ...", "for x in y:\n    pass\nelse:\n    pass"),
        ("class A: ...", "class A:\n    '''doc'''\n    x = 1"),
        ("def f(a): ...", "def f(a):\n    return 1"),
        ("@d\ndef f(): ...", "@d\ndef f(): pass"),
        ("@d(...)\nclass A: ...", "@d(1, b=2)\nclass A: pass"),
        ("if a:\n    x = 1", "if a: x = 1"),
        ("x: int = ...", "x: int = None"),
    ],
)
def test_matches(shape: str, code: str) -> None:
    assert pattern.matches(wanted(shape), node(code))


@pytest.mark.parametrize(
    ("shape", "code"),
    [
        ("x = 1", "x = 1.0"),
        ("x = 1", "x = True"),
        ("x = 1", "x: int = 1"),
        ("x = 1", "x = y = 1"),
        ("f(1)", "f(1, 2)"),
        ("f(1, ...)", "f(2, 1)"),
        ("f(1, ...)", "f()"),
        ("f(..., b=1)", "f(b=2)"),
        ("f(..., b=1)", "f(1)"),
        ("f(...)", "g(1)"),
        ("f(..., 1)", "f(2, 3, 1)"),
        ("if a: ...", "if b: pass"),
        ("if a: ...", "while a: pass"),
        ("if a:\n    ...\nelse:\n    x", "if a: pass"),
        ("if a:\n    x = 1", "if a:\n    x = 1\nelse:\n    y"),
        ("if a:\n    x = 1\n    y", "if a: x = 1"),
        ("class A: ...", "@d\nclass A: pass"),
        ("class A: ...", "class A(B): pass"),
        ("def f(a): ...", "def f(a, b): pass"),
        ("def f(): ...", "async def f(): pass"),
        ("x == 'a'", "x == b'a'"),
        ("x", "y"),
    ],
)
def test_does_not_match(shape: str, code: str) -> None:
    assert not pattern.matches(wanted(shape), node(code))


def test_the_wildcard_is_an_expression_and_no_statement() -> None:
    assert pattern.matches(pattern.expression("..."), node("f(1)"))
    assert not pattern.matches(pattern.expression("..."), node("x = 1"))


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ("f(x, 'a')", 'f(x,\n  "a")', True),
        ("u'a'", "'a'", True),
        ("x = 1", "x = 2", False),
        ("f(...)", "f(1)", False),
        ("f(...)", "f(...)", True),
        ("if a: ...", "if a: pass", False),
        ("def f(): pass", "def f():\n    # é\n    pass", True),
        ("x = 1  # type: int", "x = 1", True),
        ("x = 1", "x = True", False),
        ("[a, b]", "[a]", False),
        ("x", "x = 1", False),
    ],
)
def test_same_code(left: str, right: str, equal: bool) -> None:
    assert pattern.same(node(left), node(right)) is equal


@pytest.mark.parametrize("code", ["", "a\nb", "a; b"])
def test_a_statement_pattern_is_one_statement(code: str) -> None:
    with pytest.raises(ValueError, match="one statement"):
        pattern.statement(code)


def test_statements_of_code_to_insert() -> None:
    assert [type(item).__name__ for item in pattern.statements("a = 1\nif b: pass\n")] == ["Assign", "If"]
