"""One run of the tiny models: an engine, a batch of four unequal requests, one more that shares a prefix."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from . import hybrid_models, hybrid_shims
from .chains import ChainWatch, emitted_by_chains
from .engine import Engine, Request
from .flags import DDTREE, has_gpu, server_flags
from .models import TinyModels

PROMPTS = ([5, 6, 7, 8, 9, 10, 11], [100, 101, 102], [3] * 20 + [4, 5], [200, 17, 33, 40])
ALONE = [3] * 20 + [6, 7, 8]  # most of it is cached when it comes
TOKENS = 16  # for each request
# With speculation SGLang refuses a radix cache for recurrent states, unless it is told how to keep them.
HYBRID_FLAGS = ("--disable-radix-cache", "--max-mamba-cache-size", "12")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run."""

    algorithm: str
    budget: int = 0  # of DDTREE
    topk: int = 0
    spine: bool = False
    kind: str = ""  # of a hybrid target (hybrid_models); empty for the Llama

    @property
    def title(self) -> str:
        tree = f" budget {self.budget} topk {self.topk}" if self.algorithm == DDTREE else ""
        return f"{self.algorithm}{tree}{' spine' if self.spine else ''}"

    @property
    def flags(self) -> Sequence[str]:
        if self.algorithm != DDTREE:
            return ()
        return "--speculative-ddtree-budget", str(self.budget), "--speculative-ddtree-topk", str(self.topk)


@dataclass(frozen=True, slots=True)
class Run:
    """What came of it; every list has one entry for each request."""

    outputs: list[list[int]]
    accept_lengths: list[list[int]]  # tokens emitted in each verify step
    chain_lengths: list[list[int]]  # those that DFLASH would have emitted from the same states; empty but for DDTREE
    faults: list[str]  # of the KV pool

    @property
    def tokens(self) -> int:
        return sum(map(len, self.outputs))

    @property
    def steps(self) -> int:
        """Target forwards in decoding, counted for every request."""
        return sum(map(len, self.accept_lengths))

    @property
    def acceptance_length(self) -> float:
        """Tokens a verify step, the bonus token among them; 1.0 without speculation."""
        return sum(map(sum, self.accept_lengths)) / self.steps if self.steps else 1.0


def run_models(plan: Plan) -> dict[str, Any]:
    """A ``Run`` as JSON; in a process that has started no engine yet."""
    folder = tempfile.mkdtemp()
    models = hybrid_models.write(folder, plan.kind) if plan.kind else TinyModels().write(folder)
    flags = (*(HYBRID_FLAGS if plan.kind else ()), *plan.flags)
    if plan.kind and not has_gpu():
        hybrid_shims.apply()
    engine = Engine(server_flags(models, plan.algorithm, flags))
    watch = ChainWatch(engine) if plan.algorithm == DDTREE else None
    requests = [Request(f"r{index}", ids, TOKENS) for index, ids in enumerate(PROMPTS)]
    answers = engine.generate(*requests)
    faults = list(engine.balance().faults)
    answers += engine.generate(Request("alone", ALONE, TOKENS))
    faults += [*engine.balance().faults, *(f"slots {slots} were freed twice" for slots in engine.pools.double_frees)]
    chains = [emitted_by_chains(answer, watch.chains[answer.name]) for answer in answers] if watch else []
    lengths = [answer.accept_lengths for answer in answers]
    return asdict(Run([answer.output for answer in answers], lengths, chains, faults))
