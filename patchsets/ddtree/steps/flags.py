"""The three server arguments of DDTREE."""

from __future__ import annotations

from ddtree_patcher.codemods import AddField, AddFile, Anchor, InsertAfter
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Refusal, Step, Variant
from ddtree_patcher.shape import Holds

from ..files import (
    DDTREE_ARGS,
    DDTREE_FAMILIES,
    DDTREE_REFUSALS,
    DDTREE_RESOLUTION,
    SERVER_ARGS,
    SPEC_FIELDS,
    fragments,
    indented,
    runtime,
)

_CODE = fragments("server_args.py")
_ANNOTATED = fragments("annotated_fields.py")
# In the module that declares the fields, where annotations are evaluated.
_IMPORTS = "from sglang.srt.speculative.ddtree_args import FLAG_HELP, positive_int\n"
_MODULES = (
    AddFile(DDTREE_RESOLUTION, runtime("ddtree_resolution.py")),
    AddFile(DDTREE_FAMILIES, runtime("ddtree_families.py")),
    AddFile(DDTREE_REFUSALS, runtime("ddtree_refusals.py")),
    AddFile(DDTREE_ARGS, runtime("ddtree_args.py")),
)
_BESIDE = "speculative_dflash_block_size"
_OPTION = Anchor('parser.add_argument("--speculative-dflash-block-size", ...)', scope="ServerArgs.add_cli_args")


def _annotated(name: str, path: str, cls: str, imported: str, annotation: str, fields: str) -> Variant:
    """The fields are declared by annotations, in a class of a module that imports what these need."""
    imports = Anchor(f"from sglang.srt.arg_groups.arg_utils import {imported}")
    return Variant(
        name,
        when=(Holds(path, Anchor(f"{_BESIDE}: {annotation} = None", scope=cls)), Holds(path, imports)),
        edits=(
            *_MODULES,
            InsertAfter(path, imports, _IMPORTS),
            AddField(path, cls, _ANNOTATED.body(fields), after=_BESIDE),
        ),
    )


_BEFORE = """\
class ServerArgs:
    speculative_dflash_block_size: Optional[int] = None
    page_size: Optional[int] = None

    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--speculative-dflash-block-size", type=int)  # B
        parser.add_argument("--page-size", type=int)
"""
_AFTER = _BEFORE.replace("    page_size: ", indented(_CODE.body("ServerArgs"), "    ") + "    page_size: ").replace(
    '        parser.add_argument("--page-size"',
    indented(_CODE.body("add_cli_args"), "        ") + '        parser.add_argument("--page-size"',
)


def _annotated_before(cls: str, imported: str, annotation: str) -> str:
    return f"""\
from __future__ import annotations
from sglang.srt.arg_groups.arg_utils import {imported}
import msgspec


class {cls}:
    speculative_dflash_block_size: {annotation} = None
    page_size: A[Optional[int], "pages"] = None
"""


def _annotated_after(before: str, fields: str) -> str:
    return before.replace("import msgspec\n", _IMPORTS + "import msgspec\n").replace(
        "    page_size: ", indented(_ANNOTATED.body(fields), "    ") + "    page_size: "
    )


_IN_NO_NAMESPACE = _annotated_before("ServerArgs", "A, Arg, add_cli_args_from_dataclass", 'A[Optional[int], "B"]')
_IN_NAMESPACE = _annotated_before(
    "ServerArgs", "NS, A, Arg, add_cli_args_from_dataclass", 'A[Optional[int], "B", NS("spec")]'
)
_OF_NAMESPACE = _annotated_before("Spec", "A, Arg", 'A[Optional[int], "B"]')

STEP = Step(
    id="flags",
    summary="--speculative-ddtree-budget, --speculative-ddtree-topk and --speculative-ddtree-allow-hybrid-unsafe exist",
    why="The tree's size and width are DDTREE's own: DFLASH's fields speak of the drafted block, not of the tree.",
    requires=("enum",),
    variants=(
        Variant(
            "dataclass_and_argparse",
            when=(Holds(SERVER_ARGS, _OPTION),),
            edits=(
                *_MODULES,
                AddField(SERVER_ARGS, "ServerArgs", _CODE.body("ServerArgs"), after=_BESIDE),
                InsertAfter(SERVER_ARGS, _OPTION, _CODE.body("add_cli_args")),
            ),
        ),
        _annotated(
            "annotated",
            SERVER_ARGS,
            "ServerArgs",
            "A, Arg, add_cli_args_from_dataclass",
            "A[Optional[int], ...]",
            "Fields",
        ),
        _annotated(
            "annotated_with_namespace",
            SERVER_ARGS,
            "ServerArgs",
            "NS, A, Arg, add_cli_args_from_dataclass",
            'A[Optional[int], ..., NS("spec")]',
            "NamespacedFields",
        ),
        _annotated("class_of_namespace", SPEC_FIELDS, "Spec", "A, Arg", "A[Optional[int], ...]", "Fields"),
    ),
    cases=(
        Case("dataclass_and_argparse", {SERVER_ARGS: _BEFORE}, {SERVER_ARGS: _AFTER}),
        Case(
            "annotated",
            {SERVER_ARGS: _IN_NO_NAMESPACE},
            {SERVER_ARGS: _annotated_after(_IN_NO_NAMESPACE, "Fields")},
        ),
        Case(
            "annotated_with_namespace",
            {SERVER_ARGS: _IN_NAMESPACE},
            {SERVER_ARGS: _annotated_after(_IN_NAMESPACE, "NamespacedFields")},
        ),
        Case(
            "class_of_namespace",
            {SERVER_ARGS: "class ServerArgs: ...\n", SPEC_FIELDS: _OF_NAMESPACE},
            {SPEC_FIELDS: _annotated_after(_OF_NAMESPACE, "Fields")},
        ),
    ),
    refusals=(
        Refusal({SERVER_ARGS: _BEFORE.replace("dflash-block-size", "block-size")}, StepOutcome.ANCHOR_MISSING),
        Refusal({SERVER_ARGS: _AFTER.replace("budget: int = 16", "budget: int = 60")}, StepOutcome.HALF_UPSTREAMED),
        Refusal({SERVER_ARGS: _IN_NAMESPACE.replace('"spec"', '"exec"')}, StepOutcome.ANCHOR_MISSING),
        Refusal({SERVER_ARGS: _IN_NO_NAMESPACE.replace("A, Arg, ", "A, ")}, StepOutcome.ANCHOR_MISSING),
        Refusal({SPEC_FIELDS: _OF_NAMESPACE.replace("class Spec", "class Speculation")}, StepOutcome.ANCHOR_MISSING),
        Refusal({}, StepOutcome.FILE_MISSING),
    ),
)
