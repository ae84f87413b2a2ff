"""From pristine bytes and a patchset to a draft."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ddtree_patcher.codemods import (
    AddClass,
    AddEnumMember,
    AddField,
    AddFile,
    Anchor,
    EditCondition,
    ExtendLiteral,
    InsertAfter,
    ReplaceExpression,
)
from ddtree_patcher.digest import sha256
from ddtree_patcher.errors import PatchsetError
from ddtree_patcher.model import Severity, StepOutcome
from ddtree_patcher.patchset import Contract, Patchset, Step, Variant
from ddtree_patcher.planner import Draft, draft, unmet
from ddtree_patcher.shape import Defines, HasFile, Holds, Lacks
from ddtree_patcher.tree import Tree
from ddtree_patcher.variants import NoVariant, choose_variant

F = "pkg/f.py"
TEXT = "class Kind:\n    A = 1\n\n\ndef run():\n    start()\n    stop()\n"


def tree(files: dict[str, str]) -> Tree:
    def nothing(path: str) -> bytes:
        raise FileNotFoundError(path)

    return Tree(nothing, {path: text.encode() for path, text in files.items()})


def step(name: str, *edits: object, requires: tuple[str, ...] = (), **parts: object) -> Step:
    return Step(name, f"the step {name}", "", (Variant("only", edits=edits),), requires, **parts)  # type: ignore[arg-type]


def plan(*steps: Step, files: dict[str, str] | None = None, selected: tuple[str, ...] | None = None) -> Draft:
    patchset = Patchset("p", "1", "", "pkg", "pkg", "", steps)
    return draft(patchset, tree({F: TEXT} if files is None else files), selected)


def outcomes(made: Draft) -> dict[str, str]:
    return {item.id: str(item.outcome) for item in made.steps}


MEMBER = step("member", AddEnumMember(F, "Kind", "B", after="A"))
CALL = step("call", InsertAfter(F, Anchor("start()", scope="run"), "check()\n"))
LOST = step("lost", InsertAfter(F, Anchor("nowhere()", scope="run"), "check()\n"))


class TestPending:
    def test_every_step_on_what_the_steps_before_it_left(self) -> None:
        then = step("then", AddEnumMember(F, "Kind", "C", after="B"), requires=("member",))
        made = plan(then, CALL, MEMBER)
        assert outcomes(made) == {"member": "pending", "then": "pending", "call": "pending"}
        (file,) = made.files
        assert file.pristine.decode() == TEXT and not file.added
        assert file.desired.decode() == (
            "class Kind:\n    A = 1\n    B = 1\n    C = 1\n\n\ndef run():\n    start()\n    check()\n    stop()\n"
        )
        assert (file.pristine_sha256, file.desired_sha256) == (sha256(file.pristine), sha256(file.desired))
        assert made.tree.get(F) == file.desired
        assert not made.diagnostics and not made.conflicts

    def test_a_step_says_which_files_and_by_which_variant(self) -> None:
        two = step("two", *MEMBER.variants[0].edits, AddFile("pkg/new.py", b"x = 1\n"))
        (result,) = plan(two).steps
        assert (result.variant, result.files, result.summary) == ("only", (F, "pkg/new.py"), "the step two")

    def test_several_edits_of_one_step_in_one_file(self) -> None:
        both = step("both", *CALL.variants[0].edits, *MEMBER.variants[0].edits)
        (file,) = plan(both).files
        assert b"    B = 1\n" in file.desired and b"    check()\n" in file.desired

    def test_an_added_file(self) -> None:
        made = plan(step("add", AddFile("pkg/new.py", b"x = 1\n")))
        (file,) = made.files
        assert (file.path, file.added, file.pristine_sha256, file.desired) == ("pkg/new.py", True, "", b"x = 1\n")

    def test_the_same_bytes_always_give_the_same_draft(self) -> None:
        first, second = plan(MEMBER, CALL), plan(MEMBER, CALL)
        assert (first.steps, first.files, first.read) == (second.steps, second.files, second.read)

    def test_a_draft_names_every_file_that_it_read(self) -> None:
        shaped = Variant("only", when=(Lacks(HasFile("pkg/gone.py")),), edits=MEMBER.variants[0].edits)
        made = plan(replace(MEMBER, variants=(shaped,)))
        assert made.read == {F: sha256(TEXT.encode()), "pkg/gone.py": ""}


class TestSelected:
    def test_only_those(self) -> None:
        assert outcomes(plan(MEMBER, CALL, selected=("call",))) == {"call": "pending"}

    def test_none(self) -> None:
        made = plan(MEMBER, selected=())
        assert made.steps == () and made.files == ()


class TestUpstreamed:
    def test_wholly(self) -> None:
        (file,) = plan(MEMBER, CALL).files
        made = plan(MEMBER, CALL, files={F: file.desired.decode()})
        assert outcomes(made) == {"member": "upstreamed", "call": "upstreamed"}
        assert made.files == () and made.diagnostics == ()

    def test_an_added_file_that_is_there_already(self) -> None:
        add = step("add", AddFile("pkg/new.py", b"x = 1\n"))
        assert outcomes(plan(add, files={"pkg/new.py": "x = 1\n"})) == {"add": "upstreamed"}
        assert outcomes(plan(add, files={"pkg/new.py": "x = 2\n"})) == {"add": "half_upstreamed"}

    def test_half_of_one_step(self) -> None:
        both = step("both", *MEMBER.variants[0].edits, *CALL.variants[0].edits)
        made = plan(both, files={F: TEXT.replace("A = 1\n", "A = 1\n    B = 1\n")})
        assert outcomes(made) == {"both": "half_upstreamed"}
        (said,) = made.diagnostics
        assert (said.code, said.path, said.line, said.step) == ("half_upstreamed", F, 3, "both")
        assert made.files == ()

    def test_some_steps_of_a_patchset(self) -> None:
        call = replace(CALL, requires=("member",))
        made = plan(MEMBER, call, files={F: TEXT.replace("A = 1\n", "A = 1\n    B = 1\n")})
        assert outcomes(made) == {"member": "half_upstreamed", "call": "pending"}
        assert [(item.step, item.line) for item in made.diagnostics] == [("member", 3)]
        assert made.files == ()

    def test_of_steps_that_have_nothing_to_do_with_each_other_some_may_be(self) -> None:
        made = plan(MEMBER, CALL, files={F: TEXT.replace("A = 1\n", "A = 1\n    B = 1\n")})
        assert outcomes(made) == {"member": "upstreamed", "call": "pending"}
        assert made.diagnostics == () and [item.path for item in made.files] == [F]

    def test_with_steps_that_are_not_needed_it_is_still_wholly_there(self) -> None:
        nothing = Step("nothing", "", "", (Variant("shape"),))
        (file,) = plan(MEMBER).files
        made = plan(MEMBER, nothing, files={F: file.desired.decode()})
        assert outcomes(made) == {"member": "upstreamed", "nothing": "not_needed"}


class TestNotNeeded:
    def test_a_variant_without_edits(self) -> None:
        shaped = Step(
            "s",
            "",
            "",
            (Variant("old", (HasFile("pkg/x.py"),), MEMBER.variants[0].edits), Variant("new", (HasFile(F),))),
        )
        made = plan(shaped, CALL)
        assert outcomes(made) == {"s": "not_needed", "call": "pending"}
        assert made.steps[0].variant == "new" and made.files


class TestConflict:
    def test_blocks_everything_that_waits_for_it(self) -> None:
        second = replace(MEMBER, id="second", requires=("lost",))
        third = replace(CALL, id="third", requires=("second",))
        made = plan(LOST, second, third, CALL)
        assert outcomes(made) == {
            "lost": "anchor_missing",
            "second": "blocked_by",
            "third": "blocked_by",
            "call": "pending",
        }
        said = {item.step: item for item in made.diagnostics}
        assert said["second"].summary == "second waits for lost, which cannot be applied"
        assert said["third"].summary == "third waits for second, which cannot be applied"
        assert said["lost"].remedy and said["lost"].severity is Severity.ERROR
        assert said["second"].severity is Severity.NOTE  # what blocks it is the error
        assert made.files == () and [item.id for item in made.conflicts] == ["lost", "second", "third"]

    def test_says_where_it_looked_and_what_came_near(self) -> None:
        near = step("near", InsertAfter(F, Anchor("stopp()", scope="run"), "check()\n"))
        (said,) = plan(near).diagnostics
        assert said.summary == f"near: cannot find `stopp()` in run in {F}"
        assert said.detail.startswith("Candidates:\nline 7: stop()  (") and "% alike)" in said.detail
        assert (said.code, said.path, said.line) == ("anchor_missing", F, 7)

    @pytest.mark.parametrize(
        ("files", "outcome"),
        [
            ({F: TEXT + TEXT}, "anchor_ambiguous"),
            ({F: TEXT.replace("A =", "Z =")}, "anchor_missing"),
            ({F: TEXT.replace("A = 1\n", "A = 1\n    B = 7\n")}, "half_upstreamed"),
            ({F: ""}, "anchor_missing"),
            ({F: "class (\n"}, "not_roundtrippable"),
            ({F: TEXT.replace("\n", "\r")}, "not_roundtrippable"),
            ({F: TEXT + "\0"}, "not_roundtrippable"),
            ({}, "file_missing"),
        ],
    )
    def test_by_what_the_code_looks_like(self, files: dict[str, str], outcome: str) -> None:
        made = plan(MEMBER, files=files)
        assert outcomes(made) == {"member": outcome}
        assert made.files == ()
        assert all(item.code == outcome and item.path == F and item.remedy for item in made.diagnostics)
        assert made.diagnostics

    def test_leaves_no_half_of_a_step_behind(self) -> None:
        half = step("half", *MEMBER.variants[0].edits, *LOST.variants[0].edits)
        made = plan(half)
        assert outcomes(made) == {"half": "anchor_missing"} and made.tree.get(F) == TEXT.encode()


class TestVariants:
    A, B = HasFile("pkg/a.py"), HasFile("pkg/b.py")
    STEP = Step("s", "", "", (Variant("a", (A,)), Variant("b", (B,))))

    def chosen(self, *names: str) -> object:
        answer = choose_variant(self.STEP, tree(dict.fromkeys((f"pkg/{name}.py" for name in names), "")))
        return answer.name if isinstance(answer, Variant) else answer.outcome

    def test_the_one_that_fits(self) -> None:
        assert self.chosen("a") == "a"
        assert self.chosen("b") == "b"

    def test_none_or_several(self) -> None:
        assert self.chosen("a", "b") is StepOutcome.ANCHOR_AMBIGUOUS
        assert self.chosen() is StepOutcome.FILE_MISSING

    def test_another_shape_of_files_that_are_there(self) -> None:
        shaped = Step("s", "", "", (Variant("a", (Defines(F, "Gone"), HasFile(F))),))
        answer = choose_variant(shaped, tree({F: TEXT}))
        assert isinstance(answer, NoVariant) and answer.outcome is StepOutcome.ANCHOR_MISSING
        assert f"{F} defines Gone" in answer.reason and answer.path == F


class TestContract:
    def contracted(self, *contract: Contract) -> Draft:
        return plan(replace(MEMBER, contract=contract))

    def test_that_holds(self) -> None:
        assert outcomes(self.contracted(Contract(F, "run"), Contract(F, "Kind.A"))) == {"member": "pending"}

    def test_that_does_not_hold_with_its_line(self) -> None:
        made = self.contracted(Contract(F, "run", ("speed",)))
        assert outcomes(made) == {"member": "precondition_failed"} and made.files == ()
        (said,) = made.diagnostics
        assert "run in pkg/f.py no longer takes speed" in said.summary and (said.path, said.line) == (F, 5)

    def test_of_the_variant(self) -> None:
        variant = replace(MEMBER.variants[0], contract=(Contract("pkg/g.py", "x"),))
        assert outcomes(plan(replace(MEMBER, variants=(variant,)))) == {"member": "precondition_failed"}

    def test_of_what_a_step_before_it_brings(self) -> None:
        bring = step("bring", AddFile("pkg/new.py", b"def helper(a): ...\n"))
        use = replace(CALL, requires=("bring",), contract=(Contract("pkg/new.py", "helper", ("a",)),))
        assert outcomes(plan(bring, use)) == {"bring": "pending", "call": "pending"}
        assert outcomes(plan(bring, use, selected=("call",))) == {"call": "precondition_failed"}


class TestFaultsOfThePatchset:
    def test_two_steps_at_one_place_without_an_order(self) -> None:
        other = step("other", InsertAfter(F, Anchor("start()", scope="run"), "other()\n"))
        with pytest.raises(PatchsetError, match=r"'call' and 'other' change the same place of pkg/f\.py") as caught:
            plan(CALL, other)
        assert caught.value.path == F and caught.value.remedy

    def test_with_an_order_they_may(self) -> None:
        other = step("other", InsertAfter(F, Anchor("start()", scope="run"), "other()\n"), requires=("call",))
        (file,) = plan(CALL, other).files
        assert b"    start()\n    other()\n    check()\n" in file.desired
        between = step("between", AddEnumMember(F, "Kind", "B", after="A"), requires=("call",))
        assert plan(CALL, between, replace(other, requires=("between",))).files

    def test_a_step_that_does_not_reach_its_postcondition(self) -> None:
        empty = replace(MEMBER, postcondition=(Defines(F, "Kind.C"),))
        with pytest.raises(PatchsetError, match=r"step 'member' \(only\) does not reach .* defines Kind\.C"):
            plan(empty)

    def test_an_edit_that_another_one_of_the_same_step_undoes(self) -> None:
        undone = step("undone", ReplaceExpression(F, "run", "start()", "begin()"), EditCondition(F, "run", "x", "y"))
        files = {F: "def run():\n    if x: start()\n"}
        assert outcomes(plan(undone, files=files)) == {"undone": "pending"}
        clash = step("clash", AddField(F, "Kind", "B: int = 2\n", after="A"), AddEnumMember(F, "Kind", "B", after="A"))
        with pytest.raises(PatchsetError, match="does not reach its own postcondition"):
            plan(clash)

    def test_a_step_that_edits_what_another_one_adds(self) -> None:
        add = step("add", AddFile("pkg/new.py", b"class K:\n    A = 1\n"))
        edit = step("edit", AddEnumMember("pkg/new.py", "K", "B", after="A"), requires=("add",))
        with pytest.raises(PatchsetError, match=r"step 'edit' edits pkg/new\.py, which this patchset adds"):
            plan(add, edit)


class TestUnmet:
    VARIANT = Variant(
        "v",
        edits=(
            AddEnumMember(F, "Kind", "B", after="A"),
            AddFile("pkg/new.py", b"x = 1\n"),
            ExtendLiteral("pkg/g.py", Anchor("names = ..."), "'B'", beside="'A'"),
            AddClass(F, "class Tree: ...\n"),
        ),
    )
    GOOD = {  # noqa: RUF012
        F: "class Kind:\n    A = 1\n    B = 1\nclass Tree: ...\n",
        "pkg/new.py": "x = 1\n",
        "pkg/g.py": "names = ['A', 'B']\n",
    }

    def test_nothing(self) -> None:
        assert unmet(Step("s", "", "", ()), self.VARIANT, tree(self.GOOD)) == []

    @pytest.mark.parametrize(
        ("path", "text", "words"),
        [
            (F, "class Kind:\n    A = 1\nclass Tree: ...\n", "AddEnumMember in Kind.A is not in effect"),
            (F, "class Kind:\n    A = 1\n    B = 1\n", "AddClass in the module is not in effect"),
            ("pkg/new.py", "x = 2\n", "pkg/new.py is not the file that was added"),
            ("pkg/g.py", "names = ['A']\n", "ExtendLiteral in"),
        ],
    )
    def test_each_edit_by_its_name(self, path: str, text: str, words: str) -> None:
        (reason,) = unmet(Step("s", "", "", ()), self.VARIANT, tree({**self.GOOD, path: text}))
        assert words in reason

    @pytest.mark.parametrize("path", GOOD)
    def test_a_file_that_is_gone(self, path: str) -> None:
        assert unmet(
            Step("s", "", "", ()), self.VARIANT, tree({name: text for name, text in self.GOOD.items() if name != path})
        )

    def test_the_postcondition(self) -> None:
        promised = Step("s", "", "", (), postcondition=(Defines(F, "Kind.C"), Lacks(HasFile(F))))
        assert unmet(promised, self.VARIANT, tree(self.GOOD)) == [
            f"does not hold: {F} defines Kind.C",
            f"does not hold: not: {F} exists",
        ]


class TestLines:
    """Steps find their places in what the steps before them left; people open the file that is on disk."""

    FILE = "class Kind:\n    A = 1\n\n\ndef run():\n    start()\n    stop()\n    stop()\n"
    ABOVE = step("above", InsertAfter(F, Anchor("A = ...", scope="Kind"), "B = 2\nC = 3\n"))

    def said(self, *later: Step, text: str = FILE) -> tuple[int, str]:
        made = plan(self.ABOVE, *later, files={F: text})
        (problem,) = [item for item in made.diagnostics if item.severity is Severity.ERROR]
        return problem.line, problem.detail

    def test_of_places_that_are_too_many(self) -> None:
        line, detail = self.said(step("below", InsertAfter(F, Anchor("stop()", scope="run"), "end()\n")))
        assert (line, detail) == (7, "Candidates:\nline 7: stop()\nline 8: stop()")

    def test_of_a_place_that_comes_near(self) -> None:
        line, detail = self.said(step("below", InsertAfter(F, Anchor("stars()", scope="run"), "end()\n")))
        assert line == 6 and "line 6: start()" in detail

    def test_of_a_variant_that_does_not_fit(self) -> None:
        variant = Variant("v", when=(Holds(F, Anchor("stop()", scope="run")),))
        assert self.said(Step("below", "", "", (variant,)))[0] == 7

    def test_of_a_broken_contract(self) -> None:
        below = step("below", *CALL.variants[0].edits, contract=(Contract(F, "run", ("speed",)),))
        assert self.said(below)[0] == 5

    def test_of_a_half_that_is_there(self) -> None:
        text = self.FILE.replace("start()\n", "start()\n    check()\n")
        below = step("below", *CALL.variants[0].edits, AddFile("pkg/new.py", b""))
        assert self.said(below, text=text)[0] == 7

    def test_of_a_step_that_is_upstream_while_others_are_not(self) -> None:
        text = self.FILE.replace("start()\n", "start()\n    check()\n")
        more = step("more", InsertAfter(F, Anchor("A = ...", scope="Kind"), "Z = 9\n"), requires=("above", "call"))
        assert self.said(CALL, more, text=text)[0] == 7


def test_a_variant_that_does_not_fit_points_into_the_file_where_it_nearly_does() -> None:
    when = (Holds("pkg/g.py", Anchor("nowhere()")), Holds(F, Anchor("stop()", scope="ran")))
    made = plan(Step("s", "", "", (Variant("v", when=when),)), files={F: TEXT, "pkg/g.py": "import json\n"})
    (problem,) = made.diagnostics
    assert (problem.path, problem.line) == (F, 5)


def test_what_is_wrong_with_a_file_is_said_once_however_many_steps_it_stops() -> None:
    other = step("other", AddEnumMember(F, "Kind", "C", after="A"))
    made = plan(MEMBER, other, CALL, files={F: "class Kind(\n"})
    assert set(outcomes(made).values()) == {"not_roundtrippable"}
    assert [item.code for item in made.diagnostics] == ["not_roundtrippable"]
