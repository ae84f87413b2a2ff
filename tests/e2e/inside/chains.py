"""What DFLASH would have proposed in every state that a DDTREE run goes through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import scenarios
from ddtree_patch_probe.chains import ChainWatch, emitted_by_chains
from ddtree_patch_probe.engine import Request


def observe(requests: list[dict[str, Any]], flags: Sequence[str] = ()) -> list[list[tuple[int, int]]]:
    """For every request and every step of it: the tokens that the tree emitted, and those that the chain would have."""
    engine = scenarios.start("DDTREE", flags)
    watch = ChainWatch(engine)
    answers = engine.generate(*(Request(**fields) for fields in requests))
    return [
        list(zip(answer.accept_lengths, emitted_by_chains(answer, watch.chains[answer.name]), strict=True))
        for answer in answers
    ]
