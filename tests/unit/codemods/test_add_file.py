"""``add_file``: the planner gives it its place; here is what it says of itself."""

from __future__ import annotations

from ddtree_patcher.codemods import AddFile


def test_a_value_that_looks_at_no_symbol() -> None:
    edit = AddFile("sglang/new.py", b"x = 1\r\n")
    assert (edit.path, edit.content, edit.symbols()) == ("sglang/new.py", b"x = 1\r\n", ())
    assert edit == AddFile("sglang/new.py", b"x = 1\r\n") and edit != AddFile("sglang/new.py", b"x = 1\n")
