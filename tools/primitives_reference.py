"""Makes docs/primitives.md of the primitives' docstrings, the comments of their fields and examples that it runs.

``python tools/primitives_reference.py [PAGE]`` [docs/primitives.md]
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from ddtree_patcher import codemods
from ddtree_patcher.codemods import AlreadySo, Codemod, Found, NotFound, Source, apply_splices
from primitive_examples import EXAMPLES, Example

PAGE = Path(__file__).resolve().parent.parent / "docs" / "primitives.md"
HEAD = """\
# Primitives

Every edit that a step can make of a file. This page is made by `make docs` of the primitives' docstrings, of the
comments on their fields, and of examples that are run while it is made: what stands below them is what the code
answered. How a step is put together: [writing-a-patchset.md](writing-a-patchset.md).

All are in `ddtree_patcher.codemods`, and are values: frozen dataclasses that hold a path and say what shall be. Each
looks at the pristine bytes of one file and answers one of these. Causes and remedies: [statuses.md](statuses.md#steps).

| answer | when | the step is then |
|---|---|---|
| found | exactly one place fits | [`pending`](statuses.md#pending), and [`applied`](statuses.md#applied) by `apply` |
| already so | the code says it already | [`upstreamed`](statuses.md#upstreamed), where all of its edits do |
| not found | no place fits; the nearest are listed | [`anchor_missing`](statuses.md#anchor_missing) |
| not found | several places fit; all are listed | [`anchor_ambiguous`](statuses.md#anchor_ambiguous) |
| not found | a part, or another version of it, is there | [`half_upstreamed`](statuses.md#half_upstreamed) |
| refused | libcst changes bytes of the statement | [`not_roundtrippable`](statuses.md#not_roundtrippable) |

A *pattern* is Python with one wildcard, `...`: any expression; as a whole body, any body and whatever `else` follows;
as the last positional argument, any further arguments. Layout, quotes and comments do not matter. Bytes outside the
changed span stay as they are; code is given at column 0, and gets the indentation and the line ends of the file.
"""


class Undocumented(Exception):
    """A primitive lacks what the reference shows."""


def main(page: Path) -> None:
    page.write_text(reference(), "utf-8")


def reference() -> str:
    """The whole page."""
    names = primitives()
    if unknown := set(EXAMPLES) - set(names):
        raise Undocumented(f"tools/primitive_examples.py has examples of {sorted(unknown)}, which are no primitives")
    index = " · ".join(f"[{name}](#{name.lower()})" for name in names)
    parts = [HEAD, f"{index}\n", *(section(getattr(codemods, name)) for name in names), anchor()]
    return "\n".join(parts)


def primitives() -> list[str]:
    """The public dataclasses that are edits of a file: they name the definitions that they look at."""
    public = ((name, getattr(codemods, name)) for name in codemods.__all__)
    return sorted(name for name, item in public if dataclasses.is_dataclass(item) and hasattr(item, "symbols"))


def section(primitive: type) -> str:
    name = primitive.__name__
    if name not in EXAMPLES:
        raise Undocumented(f"{name} has no example: add one to EXAMPLES in tools/primitive_examples.py")
    example = EXAMPLES[name]
    return "\n".join([f"# {name}\n", prose(primitive), fields(primitive), *shown(example)])


def anchor() -> str:
    return "\n".join(["# Anchor\n", prose(codemods.Anchor), fields(codemods.Anchor)])


def prose(item: type) -> str:
    """The docstring as Markdown."""
    written = item.__dict__.get("__doc__") or ""
    if not written or written.startswith(f"{item.__name__}("):  # the one that dataclasses make up
        raise Undocumented(f"{item.__name__} has no docstring")
    return re.sub(r":class:`(\w+)`", r"`\1`", inspect.cleandoc(written)).replace("``", "`") + "\n"


def fields(item: type) -> str:
    """A row for each field: its type, its default, what it holds."""
    rows = ["| field | type | default | holds |", "|---|---|---|---|"]
    said = comments(item)
    for field in dataclasses.fields(item):
        default = "" if field.default is dataclasses.MISSING else f"`{field.default!r}`"
        rows.append(f"| `{field.name}` | `{field.type}` | {default} | {said[field.name].replace('|', chr(92) + '|')} |")
    return "\n".join([*rows, ""])


def comments(item: type) -> dict[str, str]:
    """Field → the comment behind it, or a word on where the docstring says it; inherited ones too."""
    found: dict[str, str] = {}
    for cls in reversed(item.__mro__):
        if dataclasses.is_dataclass(cls):
            lines = textwrap.dedent(inspect.getsource(cls)).splitlines()
            body = ast.parse("\n".join(lines)).body[0]
            assert isinstance(body, ast.ClassDef)
            for node in body.body:
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    _, _, comment = lines[(node.end_lineno or node.lineno) - 1].partition("  # ")
                    found[node.target.id] = comment.replace("``", "`")
    for name, comment in found.items():
        if not comment and f"``{name}``" not in (item.__doc__ or ""):
            raise Undocumented(f"{item.__name__}.{name} does not say what it holds: put a comment behind the field")
        found[name] = comment or "see above"
    return found


def shown(example: Example) -> Iterator[str]:
    """The example and what came of it."""
    yield f"```python\n{example.call}\n```\n"
    codemod = eval(example.call, dict(vars(codemods)))  # our own text, above
    if not example.before:
        return
    after, line = applied(codemod, example.before)
    yield f"```diff\n{difference(example.before, after)}```\n"
    yield f"On the result it answers: already so, in line {line}."
    for text in example.refuses:
        yield f"\n```python\n{text}```\n\n{refused(codemod, text)}"
    yield ""


def applied(codemod: Codemod, before: str) -> tuple[str, int]:
    """The changed text, and the line where the codemod finds its own work in it."""
    source = Source.parse(before.encode())
    found = codemod.locate(source)
    if not isinstance(found, Found):
        raise Undocumented(f"the example of {type(codemod).__name__} does not fit: {found}")
    after = apply_splices(source.data, [found.splice])
    again = codemod.locate(Source.parse(after))
    if not isinstance(again, AlreadySo):
        raise Undocumented(f"{type(codemod).__name__} does not find its own work: {again}")
    return after.decode(), again.line


def refused(codemod: Codemod, text: str) -> str:
    answer = codemod.locate(Source.parse(text.encode()))
    if not isinstance(answer, NotFound):
        raise Undocumented(f"the example of {type(codemod).__name__} is not refused: {answer}")
    wanted = answer.wanted if "`" in answer.wanted else f"“{answer.wanted}”"
    near = ", ".join(f"line {item.line} ({item.score:g})" for item in answer.candidates) or "none"
    return f"is refused: `{answer.outcome}`. Wanted: {wanted}. Candidates: {near}."


def difference(before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), n=100)
    return "".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else PAGE)
