"""DDTREE can be chosen on the command line."""

from __future__ import annotations

from ddtree_patcher.codemods import Anchor, ExtendLiteral
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Refusal, Step, Variant
from ddtree_patcher.shape import Holds, Lacks

from ..files import SERVER_ARGS, SPEC_FIELDS

_SCOPE = "ServerArgs.add_cli_args"
_OPTION = Anchor('parser.add_argument("--speculative-algorithm", ...)', scope=_SCOPE)
_WITH_CHOICES = Anchor('parser.add_argument("--speculative-algorithm", ..., choices=...)', scope=_SCOPE)

# Any name is taken, and SpeculativeAlgorithm.from_string knows which there are.
_ANNOTATED = {
    "annotated": Holds(SERVER_ARGS, Anchor("speculative_algorithm: A[Optional[str], ...] = None", scope="ServerArgs")),
    "annotated_with_namespace": Holds(
        SERVER_ARGS, Anchor('speculative_algorithm: A[Optional[str], ..., NS("spec")] = None', scope="ServerArgs")
    ),
    "class_of_namespace": Holds(
        SPEC_FIELDS, Anchor("speculative_algorithm: A[Optional[str], ...] = None", scope="Spec")
    ),
}

_BEFORE = """\
class ServerArgs:
    def add_cli_args(parser):
        parser.add_argument(
            "--speculative-algorithm",
            type=str,
            choices=["DFLASH", "EAGLE"],
        )
"""
_FIELD = """\
class ServerArgs:
    speculative_algorithm: A[Optional[str], "any name"] = None
"""

STEP = Step(
    id="choices",
    summary="DDTREE can be chosen with --speculative-algorithm",
    why="0.5.11 lists the names that the command line takes; later releases take any name that the enum knows.",
    requires=("enum", "flags", "validation"),
    variants=(
        Variant(
            "listed",
            when=(Holds(SERVER_ARGS, _WITH_CHOICES),),
            edits=(ExtendLiteral(SERVER_ARGS, _WITH_CHOICES, '"DDTREE"', beside='"DFLASH"'),),
        ),
        Variant("free_string", when=(Holds(SERVER_ARGS, _OPTION), Lacks(Holds(SERVER_ARGS, _WITH_CHOICES)))),
        *(Variant(name, when=(shape,)) for name, shape in _ANNOTATED.items()),
    ),
    cases=(
        Case(
            "listed",
            {SERVER_ARGS: _BEFORE},
            {SERVER_ARGS: _BEFORE.replace('["DFLASH", ', '["DFLASH", "DDTREE", ')},
        ),
        Case("free_string", {SERVER_ARGS: _BEFORE.replace('            choices=["DFLASH", "EAGLE"],\n', "")}, {}),
        Case("annotated", {SERVER_ARGS: _FIELD}, {}),
        Case("annotated_with_namespace", {SERVER_ARGS: _FIELD.replace('name"', 'name", NS("spec")')}, {}),
        Case(
            "class_of_namespace",
            {SERVER_ARGS: "class ServerArgs: ...\n", SPEC_FIELDS: _FIELD.replace("ServerArgs", "Spec")},
            {},
        ),
    ),
    refusals=(
        Refusal({SERVER_ARGS: _BEFORE.replace("--speculative-algorithm", "--algorithm")}, StepOutcome.ANCHOR_MISSING),
        Refusal({SERVER_ARGS: _BEFORE.replace("DFLASH", "OTHER")}, StepOutcome.ANCHOR_MISSING),
        Refusal({SERVER_ARGS: _FIELD.replace("str", 'Literal["DFLASH"]')}, StepOutcome.ANCHOR_MISSING),
    ),
)
