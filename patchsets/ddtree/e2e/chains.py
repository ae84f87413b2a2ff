"""What DFLASH would have proposed, and emitted, in every state that a DDTREE run goes through."""

from __future__ import annotations

from typing import Any

import torch

from .engine import Answer, Engine

Chain = list[int]  # the tokens that the drafter finds most probable, position by position


class ChainWatch:
    """Records the chain of every request in every step of an engine that runs DDTREE.

    It is taken from the draft model's hidden states and the target's head, before a tree is built of them.
    """

    def __init__(self, engine: Engine) -> None:
        self.chains: dict[str, list[Chain]] = {}
        self._drafted: list[list[Chain]] = []  # of the batch that runs
        runtime = engine.worker.ddtree
        upstream = runtime.draft

        def draft(root_tokens: torch.Tensor, hidden: torch.Tensor, lm_head: Any) -> Any:
            self._drafted.append((hidden @ lm_head.weight.T).argmax(dim=-1).tolist())
            return upstream(root_tokens, hidden, lm_head)

        runtime.draft = draft
        engine.after_batch.append(self._assign)

    def _assign(self, batch: Any) -> None:
        if self._drafted:
            for request, chain in zip(batch.reqs, self._drafted.pop(), strict=True):
                self.chains.setdefault(request.rid, []).append(chain)


def emitted_by_chains(answer: Answer, chains: list[Chain]) -> list[int]:
    """The tokens that every chain would have emitted, with the bonus token where there is room for it.

    For a greedy request: its chain is right as far as it agrees with what was emitted.
    """
    counts, place = [], 1  # the prefill emitted the first token
    for length, chain in zip(answer.accept_lengths, chains, strict=True):
        following = answer.output[place:]
        right = 0
        while right < min(len(chain), len(following)) and chain[right] == following[right]:
            right += 1
        counts.append(min(right + 1, len(following)))
        place += length
    return counts
