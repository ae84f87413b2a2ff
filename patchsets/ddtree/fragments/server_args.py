"""Goes to where server arguments are declared and resolved: ``server_args.py`` and, in later releases, the hooks,
fields and pipeline under ``arg_groups`` and the algorithm in ``spec_info.py``.

Each function's body is inserted, not the function. The object that is resolved is called ``self`` in ServerArgs and
``server_args`` elsewhere; hence the variants of the calls around DFLASH's checks.
"""

from __future__ import annotations

import argparse
from typing import Any


class ServerArgs:
    """0.5.11 to 0.5.13.post1: the three fields, after ``speculative_dflash_block_size``."""

    speculative_ddtree_budget: int = 16
    speculative_ddtree_topk: int = 8
    speculative_ddtree_allow_hybrid_unsafe: bool = False


def add_cli_args(parser: argparse.ArgumentParser) -> None:
    """0.5.11 to 0.5.13.post1: the three flags, after ``--speculative-dflash-block-size``."""
    from sglang.srt.speculative.ddtree_args import FLAG_HELP, positive_int

    parser.add_argument(
        "--speculative-ddtree-budget",
        type=positive_int,
        help=FLAG_HELP["budget"],
        default=ServerArgs.speculative_ddtree_budget,
    )
    parser.add_argument(
        "--speculative-ddtree-topk",
        type=positive_int,
        help=FLAG_HELP["topk"],
        default=ServerArgs.speculative_ddtree_topk,
    )
    parser.add_argument(
        "--speculative-ddtree-allow-hybrid-unsafe",
        action="store_true",
        help=FLAG_HELP["allow_hybrid_unsafe"],
        default=ServerArgs.speculative_ddtree_allow_hybrid_unsafe,
    )


def prepare(self: Any) -> None:
    """0.5.11 to 0.5.18: in ``ServerArgs``, before the first automatic choice of a backend."""
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


def prepare_server_args(server_args: Any) -> None:
    """From 0.5.19 on: in ``run_resolution_pipeline``, likewise."""
    if (server_args.speculative_algorithm or "").upper() == "DDTREE":
        from sglang.srt.speculative.ddtree_args import prepare_ddtree_args

        prepare_ddtree_args(server_args)


def check_algorithm(self: Any, server_args: Any) -> None:
    """From 0.5.14 on: before ``_handle_dflash(server_args)`` in ``SpeculativeAlgorithm.handle_server_args``."""
    if self.is_ddtree():
        from sglang.srt.speculative.ddtree_args import check_ddtree_args

        check_ddtree_args(server_args)


def resolve_algorithm(self: Any, server_args: Any) -> None:
    """From 0.5.14 on: after it."""
    if self.is_ddtree():
        from sglang.srt.speculative.ddtree_args import resolve_ddtree_args

        resolve_ddtree_args(server_args)
