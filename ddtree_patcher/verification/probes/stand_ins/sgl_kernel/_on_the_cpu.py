"""The few kernels that SGLang calls on a CPU without asking whether they are there, computed plainly.

Bookkeeping of KV slots, no arithmetic: the package's own ones for the CPU do the same. SGLang asks for them from 0.5.16
on, whatever the model is.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

Tensor = Any  # torch's: SGLang has imported it before it comes here


def copy_all_layer_kv_cache_cpu(data_ptrs: Tensor, strides: Tensor, tgt_loc: Tensor, src_loc: Tensor) -> None:
    """Rows of every buffer to other rows of it, as if all were read before one is written."""
    sources, targets = src_loc.tolist(), tgt_loc.tolist()
    for base, size in zip(data_ptrs.tolist(), strides.tolist(), strict=True):
        rows = [ctypes.string_at(base + row * size, size) for row in sources]
        for row, content in zip(targets, rows, strict=True):
            ctypes.memmove(base + row * size, content, size)


def assign_req_to_token_pool_cpu(
    req_pool_indices: Tensor, req_to_token: Tensor, start: Tensor, end: Tensor, slots: Tensor, *_: object
) -> None:
    """Packed slots into the requests' rows, from their start to their end."""
    for row, first, last, packed in _parts(req_pool_indices, start, end):
        req_to_token[row, first:last] = slots[packed].to(req_to_token.dtype)


def assign_extend_cache_locs_cpu(
    req_pool_indices: Tensor, req_to_token: Tensor, start: Tensor, end: Tensor, slots: Tensor, *_: object
) -> None:
    """The requests' rows, from their start to their end, as packed slots."""
    for row, first, last, packed in _parts(req_pool_indices, start, end):
        slots[packed] = req_to_token[row, first:last].to(slots.dtype)


def _parts(rows: Tensor, start: Tensor, end: Tensor) -> Iterator[tuple[int, int, int, slice]]:
    """Of every request: its row, from where to where in it, and where that is in what is packed."""
    place = 0
    for row, first, last in zip(rows.tolist(), start.tolist(), end.tolist(), strict=True):
        yield row, first, last, slice(place, place + last - first)
        place += last - first
