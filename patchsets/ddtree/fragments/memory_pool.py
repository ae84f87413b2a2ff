"""Goes into ``sglang/srt/mem_cache/memory_pool.py`` from 0.5.14 on: every node has a convolution window of its own."""

from __future__ import annotations


def dense_windows() -> bool:  # type: ignore[return]
    """Last but one in ``conv_window_dedup_enabled``: the windows of a chain overlap, those of a tree must not."""
    from sglang.srt.speculative.ddtree_config import verifies_trees

    if verifies_trees():
        return False
