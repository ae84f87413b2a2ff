"""Goes into ``sglang/srt/server_args.py`` and, from 0.5.13 on, ``sglang/srt/arg_groups/speculative_hook.py``.

Each function's body is inserted, not the function. The object that is resolved is called ``self`` in ServerArgs and
``server_args`` in the hook; hence two variants of the calls around DFLASH's checks.
"""

from __future__ import annotations

import argparse
from typing import Any


class ServerArgs:
    """The three fields, after ``speculative_dflash_block_size``."""

    speculative_ddtree_budget: int = 16
    speculative_ddtree_topk: int = 8
    speculative_ddtree_allow_hybrid_unsafe: bool = False


def add_cli_args(parser: argparse.ArgumentParser) -> None:
    """The three flags, after ``--speculative-dflash-block-size``."""
    from sglang.srt.speculative.ddtree_args import positive_int

    parser.add_argument(
        "--speculative-ddtree-budget",
        type=positive_int,
        help="DDTREE only. How many nodes the draft tree has, the root not counted. "
        "The target model verifies this many plus one tokens per request and step.",
        default=ServerArgs.speculative_ddtree_budget,
    )
    parser.add_argument(
        "--speculative-ddtree-topk",
        type=positive_int,
        help="DDTREE only. How many candidate tokens of each drafted position may enter the draft tree.",
        default=ServerArgs.speculative_ddtree_topk,
    )
    parser.add_argument(
        "--speculative-ddtree-allow-hybrid-unsafe",
        action="store_true",
        help="DDTREE only. Allow targets with recurrent layers (Mamba, GDN, linear attention), although their state "
        "leaks between the branches of the tree and the generated tokens are wrong.",
        default=ServerArgs.speculative_ddtree_allow_hybrid_unsafe,
    )


def prepare(self: Any) -> None:
    """In ``ServerArgs.__post_init__``, before the first automatic choice of a backend."""
    if (self.speculative_algorithm or "").upper() == "DDTREE":
        from sglang.srt.speculative.ddtree_args import prepare_ddtree_args

        prepare_ddtree_args(self)


def check_self(self: Any) -> None:
    """0.5.11 to 0.5.12.post1: first in the DFLASH branch of ``_handle_speculative_decoding``."""
    if self.speculative_algorithm == "DDTREE":
        from sglang.srt.speculative.ddtree_args import check_ddtree_args

        check_ddtree_args(self)


def resolve_self(self: Any) -> None:
    """0.5.11 to 0.5.12.post1: last in the same branch."""
    if self.speculative_algorithm == "DDTREE":
        from sglang.srt.speculative.ddtree_args import resolve_ddtree_args

        resolve_ddtree_args(self)


def check_server_args(server_args: Any) -> None:
    """0.5.13 and 0.5.13.post1: first in the DFLASH branch of ``handle_speculative_decoding``."""
    if server_args.speculative_algorithm == "DDTREE":
        from sglang.srt.speculative.ddtree_args import check_ddtree_args

        check_ddtree_args(server_args)


def resolve_server_args(server_args: Any) -> None:
    """0.5.13 and 0.5.13.post1: last in the same branch."""
    if server_args.speculative_algorithm == "DDTREE":
        from sglang.srt.speculative.ddtree_args import resolve_ddtree_args

        resolve_ddtree_args(server_args)
