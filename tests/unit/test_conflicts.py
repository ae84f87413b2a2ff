"""What a conflict is told with: where the code went, what it was in the nearest release, and how all of it is drawn."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from ddtree_patcher.codemods import AddField, Anchor, InsertAfter, InsertBefore, Target
from ddtree_patcher.model import Diagnostic, History, Place, Severity, StepOutcome
from ddtree_patcher.operations.conflicts import Here, explained
from ddtree_patcher.operations.known_variants import hold_back
from ddtree_patcher.operations.moves import find_move
from ddtree_patcher.patchset import Patchset, Step, Variant
from ddtree_patcher.planner import Draft, draft
from ddtree_patcher.report import diagnostic_text
from ddtree_patcher.shape import Defines, HasFile, Lacks
from ddtree_patcher.survival import Survival
from ddtree_patcher.tree import Tree

F, G, H = "pkg/f.py", "pkg/g.py", "pkg/h.py"
CODE = "def run(x):\n    start()\n    stop(x)\n"
TARGET = Target("run", statement="stop(...)")


def reader(files: dict[str, str]) -> Callable[[str], bytes]:
    def read(path: str) -> bytes:
        if path not in files:
            raise FileNotFoundError(path)
        return files[path].encode()

    return read


def moved(files: dict[str, str], target: Target = TARGET, known: str = "") -> tuple[str, str, int, bool] | None:
    found = find_move(F, target, reader(files), files, known)
    return found and (found.path, found.qualname, found.line, found.certain)


class TestMove:
    def test_to_a_file_that_has_the_place(self) -> None:
        assert moved({F: "x = 1\n", G: "\n" + CODE, H: "run()\n"}) == (G, "run", 4, True)

    def test_of_a_whole_file(self) -> None:
        assert moved({G: CODE}) == (G, "run", 3, True)

    def test_of_something_that_has_only_the_name_is_not_certain(self) -> None:
        assert moved({F: "x = 1\n", G: "def run():\n    pass\n"}) == (G, "run", 1, False)

    def test_which_of_two_is_not_said_unless_one_has_the_place(self) -> None:
        other = "def run():\n    pass\n"
        assert moved({F: "", G: other, H: other}) is None
        assert moved({F: "", G: other, H: CODE}) == (H, "run", 3, True)
        assert moved({F: "", G: CODE, H: CODE}) is None

    def test_none_of_what_is_still_there(self) -> None:
        assert moved({F: "def run(): ...\n", G: CODE}) is None

    def test_a_method_only_into_a_class_and_never_a_dunder(self) -> None:
        method = Target("Worker.run", statement="stop(...)")
        inside = "class Base:\n    def run(self):\n        stop()\n"
        assert moved({F: "class Worker: ...\n", G: CODE}, method) is None
        assert moved({F: "class Worker: ...\n", G: inside}, method) == (G, "Base.run", 3, True)
        dunder = Target("Worker.__init__", statement="stop(...)")
        assert moved({F: "class Worker: ...\n", G: inside.replace("run", "__init__")}, dunder) is None

    def test_a_file_that_is_no_python_is_passed_over(self) -> None:
        assert moved({F: "", G: "def run(:\n", H: CODE}) == (H, "run", 3, True)
        assert moved({F: "def (\n", G: CODE}) is None


KNOWN = Survival("p", {"guard": {"1.0": "plain", "1.1": "guarded", "1.2": "guarded"}})
GUARD = Step(
    "guard",
    "",
    "",
    (
        Variant("plain", when=(HasFile(F), Lacks(Defines(F, "shared")))),
        Variant(
            "guarded", when=(Defines(F, "shared"),), edits=(InsertAfter(F, Anchor("a()", scope="shared"), "b()\n"),)
        ),
    ),
)
NEXT = Step("next", "", "", (Variant("v", edits=(InsertBefore(F, Anchor("c()"), "d()\n"),)),), requires=("guard",))
PATCHSET = Patchset("p", "1", "", "p", "pkg", ">=1", (GUARD, NEXT))


def held(text: str, release: str, *, allow_drift: bool = False) -> Draft:
    tree = Tree(reader({F: text}))
    return hold_back(draft(PATCHSET, tree), PATCHSET, KNOWN, release, tree, allow_drift=allow_drift)


class TestHeldBack:
    """A renamed function is no function that never was."""

    RENAMED = "def share():\n    a()\nc()\n"

    def test_a_step_that_would_go_back_to_an_older_variant(self) -> None:
        made = held(self.RENAMED, "1.2")
        assert [step.outcome.value for step in made.steps] == ["anchor_missing", "blocked_by"]
        assert made.files == () and {item.code for item in made.diagnostics} == {"anchor_missing"}
        said = made.diagnostics[0]
        assert (said.step, said.path, said.line) == ("guard", F, 1) and "plain" in said.detail
        assert said.expected == "shared  # defined or imported"

    @pytest.mark.parametrize("release", ["1.0", "2.0", ""])
    def test_not_where_the_nearest_release_has_it_so_or_is_not_known(self, release: str) -> None:
        made = held(self.RENAMED, release)
        assert [step.outcome.value for step in made.steps] == ["not_needed", "pending"] and made.files

    def test_not_where_the_shape_is_the_known_one(self) -> None:
        assert [step.variant for step in held("def shared():\n    a()\nc()\n", "1.2").steps] == ["guarded", "v"]

    def test_with_leave_to_drift_it_is_a_warning(self) -> None:
        made = held(self.RENAMED, "1.2", allow_drift=True)
        assert made.files and [item.severity for item in made.diagnostics] == [Severity.WARNING]


def test_history_and_remedy_of_a_move() -> None:
    files = {F: "x = 1\n", G: CODE}
    said = Diagnostic(StepOutcome.ANCHOR_MISSING.value, Severity.ERROR, "s", step="guard", path=F, remedy="Look.")
    here = Here("p", "1.3", reader(files), lambda: files, KNOWN)
    found = explained({said: TARGET}, said, here)
    assert found.history == History("1.2", "1.3", G, "1.3") and (found.path, found.line) == (G, 3)
    assert G in found.remedy and "stay on p==1.2" in found.remedy


def test_what_is_no_conflict_of_a_step_is_left_alone() -> None:
    here = Here("p", "1.3", reader({}), tuple, KNOWN)
    for code in ("foreign", "blocked_by", "half_upstreamed"):
        said = Diagnostic(code, Severity.ERROR, "s", step="guard", path=F)
        assert explained({}, said, here) is said


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("terminal", [True, False])
def test_as_text_code_keeps_its_lines(width: int, terminal: bool) -> None:
    long = "        call(" + "x" * 200 + ")"
    place = Place(F, 7, 0.9, ((6, "    if a:"), (7, long), (8, "")))
    item = Diagnostic(
        "anchor_missing",
        Severity.ERROR,
        "s: cannot find it",
        remedy="Look.",
        path=F,
        line=7,
        expected="# in run\ncall(...)",
        candidates=(place,),
        history=History("1.0", "1.1", G, "1.1"),
    )
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None)
    diagnostic_text.draw(item, console)
    lines = console.file.getvalue().splitlines()
    (code,) = [line for line in lines if " > 7 |" in line]
    assert (len(code) <= width) is terminal and f"near (90% alike) {F}:7" in "\n".join(lines)
    assert "moved to pkg/g.py since 1.1; it last fits 1.0, and first fails in 1.1" in " ".join(" ".join(lines).split())
    assert "\x1b" not in console.file.getvalue() or terminal


def test_a_terminal_is_told_nothing_by_the_code() -> None:
    place = Place(F, 1, 1.0, ((1, "x = '\x1b]0;evil\x07'"),))
    item = Diagnostic("anchor_ambiguous", Severity.ERROR, "s", path=F, line=1, expected="\x1b[2J", candidates=(place,))
    console = Console(file=io.StringIO(), width=80, color_system=None)
    diagnostic_text.draw(item, console)
    assert "\x1b" not in console.file.getvalue() and "\\x1b]0;evil" in console.file.getvalue()


def test_every_codemod_shows_what_it_looks_for() -> None:
    assert Anchor("if a: ...", scope="C.m", within="for x in y: ...").target().as_code() == (
        "# in C.m\n# inside: for x in y: ...\nif a: ..."
    )
    assert AddField(F, "C", "x = 1\n", after="y").target().as_code() == "# in C\n# a member y"
    assert Defines(F, "C.m").target().as_code() == "# in C\nm  # defined or imported"
