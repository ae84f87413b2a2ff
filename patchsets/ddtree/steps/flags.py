"""The three server arguments of DDTREE."""

from __future__ import annotations

from ddtree_patcher.codemods import AddField, AddFile, Anchor, InsertAfter
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Refusal, Step, Variant
from ddtree_patcher.shape import Defines, Holds

from ..files import DDTREE_ARGS, SERVER_ARGS, fragments, indented, runtime

_CODE = fragments("server_args.py")
_BLOCK_SIZE = Anchor('parser.add_argument("--speculative-dflash-block-size", ...)', scope="ServerArgs.add_cli_args")

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

STEP = Step(
    id="flags",
    summary="--speculative-ddtree-budget, --speculative-ddtree-topk and --speculative-ddtree-allow-hybrid-unsafe exist",
    why="The tree's size and width are DDTREE's own: DFLASH's fields speak of the drafted block, not of the tree.",
    requires=("enum",),
    variants=(
        Variant(
            "dataclass_and_argparse",
            when=(Holds(SERVER_ARGS, _BLOCK_SIZE),),
            edits=(
                AddFile(DDTREE_ARGS, runtime("ddtree_args.py")),
                AddField(SERVER_ARGS, "ServerArgs", _CODE.body("ServerArgs"), after="speculative_dflash_block_size"),
                InsertAfter(SERVER_ARGS, _BLOCK_SIZE, _CODE.body("add_cli_args")),
            ),
        ),
    ),
    postcondition=(Defines(SERVER_ARGS, "ServerArgs.speculative_ddtree_budget"),),
    cases=(Case("dataclass_and_argparse", {SERVER_ARGS: _BEFORE}, {SERVER_ARGS: _AFTER}),),
    refusals=(
        Refusal({SERVER_ARGS: _BEFORE.replace("dflash-block-size", "block-size")}, StepOutcome.ANCHOR_MISSING),
        Refusal({SERVER_ARGS: _AFTER.replace("budget: int = 16", "budget: int = 60")}, StepOutcome.HALF_UPSTREAMED),
        Refusal({}, StepOutcome.FILE_MISSING),
    ),
)
