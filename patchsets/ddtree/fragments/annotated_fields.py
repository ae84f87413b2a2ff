"""Goes to where a server argument is declared by an annotation: ``server_args.py`` from 0.5.14 on, and from 0.5.20 on
``arg_groups/fields/spec.py``. The command line is made of the annotations, and calls ``type_parser`` on what it reads.
"""

from __future__ import annotations

from typing import Annotated as A

from sglang.srt.arg_groups.arg_utils import NS, Arg
from sglang.srt.speculative.ddtree_args import FLAG_HELP, positive_int


class Fields:
    """The three fields, after ``speculative_dflash_block_size``: 0.5.14 to 0.5.16, and in a class for the namespace."""

    speculative_ddtree_budget: A[int, Arg(help=FLAG_HELP["budget"], type_parser=positive_int)] = 16
    speculative_ddtree_topk: A[int, Arg(help=FLAG_HELP["topk"], type_parser=positive_int)] = 8
    speculative_ddtree_allow_hybrid_unsafe: A[bool, Arg(help=FLAG_HELP["allow_hybrid_unsafe"])] = False


class NamespacedFields:
    """0.5.17 to 0.5.19: likewise, each naming its namespace; ``get_spec()`` has only what names it."""

    speculative_ddtree_budget: A[int, Arg(help=FLAG_HELP["budget"], type_parser=positive_int), NS("spec")] = 16
    speculative_ddtree_topk: A[int, Arg(help=FLAG_HELP["topk"], type_parser=positive_int), NS("spec")] = 8
    speculative_ddtree_allow_hybrid_unsafe: A[bool, Arg(help=FLAG_HELP["allow_hybrid_unsafe"]), NS("spec")] = False
