"""What DFLASH would have proposed, and emitted, in every state that a DDTREE run goes through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .engine import Answer, Engine
from .notes import BatchNotes

Chain = list[int]  # the tokens that the drafter finds most probable, position by position


class ChainWatch:
    """Records the chain of every request in every step of an engine that runs DDTREE.

    It is taken from what the draft model answers and the target's head, before a tree is built of them.
    """

    def __init__(self, engine: Engine) -> None:
        self.chains: dict[str, list[Chain]] = {}
        notes: BatchNotes[list[Chain]] = BatchNotes(engine, self._keep)
        runner = engine.worker.draft_model_runner
        head = engine.scheduler.tp_worker.model_runner.model.lm_head
        block_size = int(engine.worker.ddtree.block_size)
        upstream = runner.forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            output = upstream(*args, **kwargs)
            hidden = output.logits_output.hidden_states
            drafted = hidden.view(-1, block_size, hidden.shape[-1])[:, 1:]
            notes.add((drafted @ head.weight.T).argmax(dim=-1).tolist())
            return output

        runner.forward = forward

    def _keep(self, requests: list[Any], emitted: Mapping[int, int], notes: list[list[Chain]]) -> None:
        for place in emitted:
            (chains,) = notes
            self.chains.setdefault(requests[place].rid, []).append(chains[place])


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
