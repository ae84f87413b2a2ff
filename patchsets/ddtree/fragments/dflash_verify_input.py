"""Goes into ``DFlashVerifyInput`` of ``sglang/srt/speculative/dflash_info.py``."""

from __future__ import annotations


class DFlashVerifyInput:
    """Not fields, as no one sets them there: rehearsed forwards of a tree's backends ask a chain's input for links."""

    retrieve_next_token = None
    retrieve_next_sibling = None
