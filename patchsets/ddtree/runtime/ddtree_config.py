"""Where a release keeps the resolved numbers of speculation, and the two widths that follow from them.

DFLASH has one width: what the drafter fills is what the target verifies. A tree has two, B for the drafter and W for
the target (ddtree_args), and SGLang has one number, ``speculative_num_draft_tokens``, which is W.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any


def spec_config(server_args: Any = None) -> Any:
    """Holds the ``speculative_*`` values as they were resolved: the published ones where the release publishes them.

    `server_args` are the arguments of this process; None asks for those that were set for the scheduler.
    """
    try:
        from sglang.srt.runtime_context import get_spec
    except ImportError:
        if server_args is not None:
            return server_args
        from sglang.srt.server_args import get_global_server_args

        return get_global_server_args()
    return get_spec()


def verifies_trees() -> bool:
    """Whether this server's algorithm is DDTREE; the pools are built by it before there is a worker."""
    return str(spec_config().speculative_algorithm).upper() == "DDTREE"


def draft_width() -> int:
    """B: the rows of a request in a forward of the drafter."""
    return int(spec_config().speculative_dflash_block_size)


def row_headroom(page_size: int) -> int:
    """How many slots a request's row must hold beyond the context: what the scheduler reserves for two steps, in pages.

    SGLang's rows end one step and four slots behind the context, which is too short for a tree at the context's end:
    its slots would be written into the row of the next request.
    """
    return 2 * int(spec_config().speculative_num_draft_tokens) + int(page_size)


def narrow_draft_attention(draft_runner: Any, block_size: int) -> None:
    """Let the drafter's attention backend count `block_size` rows a request.

    Backends of some releases take W from the arguments of the server, which target and drafter share.
    """
    backend = draft_runner.attn_backend
    for name in ("num_draft_tokens", "speculative_num_draft_tokens"):
        if getattr(backend, name, None) is not None:
            setattr(backend, name, block_size)


def as_wide_as(verify_input: Any, rows: int) -> Any:
    """The same verify input with `rows` rows a request: a rehearsed forward of the drafter has B, not W."""
    counts = {item.name for item in fields(verify_input)} & {"num_tokens_per_batch", "num_tokens_per_req"}
    return replace(verify_input, draft_token_num=rows, **dict.fromkeys(counts, -1))


def make_room_for_masks(attn_backend: Any, rows: int, longest: int) -> None:
    """Let the graphs' mask buffer hold `rows` rows of `longest` entries, where the backend has one and it is smaller.

    Backends size it for sequences that end with the context; a tree begins there, and a bound may be beyond it.
    """
    inner = ("decode_backend", "prefill_backend", "full_attn_backend")
    for backend in (attn_backend, *(getattr(attn_backend, name, None) for name in inner)):
        mask = getattr(backend, "_verify_mask", None)  # from 0.5.17 on
        buffer = getattr(backend, "cuda_graph_custom_mask", None) if mask is None else mask.buffer
        if buffer is None or buffer.numel() >= rows * longest:
            continue
        buffer = buffer.new_zeros(rows * longest)
        if mask is None:
            backend.cuda_graph_custom_mask = buffer
        else:
            backend._verify_mask = type(mask)(buffer=buffer, mode=mask.mode, max_bs=mask.max_bs, is_read=mask.is_read)
