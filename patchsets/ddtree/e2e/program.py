"""The end-to-end tier: DDTREE on tiny random models in the real engine, beside DFLASH and plain decoding.

Greedy tokens are those of plain decoding; a tree that is a chain accepts step by step what DFLASH accepts; with the
spine no step accepts less than DFLASH would from the same state, and trees need fewer target forwards on the whole.
With the argument ``--hybrid`` the targets have recurrent layers, and their tokens are compared alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from .flags import DDTREE, DFLASH, NONE, has_gpu, preload
from .forks import Outcome, call_in_fork
from .hybrid_models import MAMBA2, NEMOTRON_H, QWEN3_NEXT, serves_mamba2
from .hybrid_shims import FLOAT32_STATES
from .models import TinyModels
from .runs import Plan, Run, run_models

RUN_LIMIT = 240.0  # seconds

CHAIN_SHAPED = Plan(DDTREE, budget=TinyModels().block_size - 1, topk=1)
TREES = (
    Plan(DDTREE, budget=1, topk=4),
    CHAIN_SHAPED,
    Plan(DDTREE, budget=7, topk=4),
    Plan(DDTREE, budget=16, topk=4, spine=True),
    Plan(DDTREE, budget=16, topk=8),
)
Progress = Generator[object, None, str]  # text says what is done, a dictionary is a row of the table


class Runs:
    """Every plan is run once; where it could not be, whoever asks for it is told the same reason."""

    def __init__(self, kind: str = "", done: dict[Plan, Run | Exception] | None = None) -> None:
        self._kind = kind  # of the target; empty for the Llama
        self._done: dict[Plan, Run | Exception] = {} if done is None else done

    def of(self, kind: str) -> Runs:
        """The same plans on targets of another kind, and the same memory."""
        return Runs(kind, self._done)

    def get(self, plan: Plan) -> Run:
        plan = replace(plan, kind=self._kind)
        if plan not in self._done:
            try:
                self._done[plan] = _run(plan)
            except Exception as error:
                self._done[plan] = error
        run = self._done[plan]
        if isinstance(run, Exception):
            raise run
        return run


def checks() -> Iterator[tuple[str, Callable[[], Any]]]:
    runs = Runs()
    if "--hybrid" in sys.argv[1:]:
        yield from _hybrid_checks(runs)
        return
    yield "plain-decoding", partial(_plain, runs)
    yield "dflash-tokens", partial(_equal, runs, Plan(DFLASH))
    for plan in TREES:
        yield f"{plan.title.lower().replace(' ', '-')}-tokens", partial(_equal, runs, plan)
    yield "chain-shaped-tree-is-dflash", partial(_chain_is_dflash, runs)
    yield "spine-never-accepts-less", partial(_spine, runs)
    yield "trees-need-fewer-forwards", partial(_fewer_forwards, runs)


def _hybrid_checks(runs: Runs) -> Iterator[tuple[str, Callable[[], Any]]]:
    for kind in (QWEN3_NEXT, NEMOTRON_H):
        yield f"{kind}-plain-decoding", partial(_hybrid, runs, kind, _plain)
        for plan in (Plan(DFLASH), Plan(DDTREE, budget=4, topk=4), Plan(DDTREE, budget=12, topk=4)):
            name = f"{kind}-{plan.title.lower().replace(' ', '-')}-tokens"
            yield name, partial(_hybrid, runs, kind, partial(_equal, plan=plan))


def _hybrid(runs: Runs, kind: str, check: Callable[..., Progress]) -> Progress:
    """One check of targets of a kind, where this release serves them."""
    if kind == NEMOTRON_H:
        preload()
        if not serves_mamba2():
            return f"DFLASH serves no {MAMBA2} target in this release"
    return (yield from check(runs.of(kind)))


def _plain(runs: Runs) -> Progress:
    yield "loading SGLang, then decoding without speculation"
    run = runs.get(Plan(NONE))
    yield _row(Plan(NONE), run, run)
    return f"{run.tokens} tokens of {len(run.outputs)} requests"


def _equal(runs: Runs, plan: Plan) -> Progress:
    plain = runs.get(Plan(NONE))
    yield f"running {plan.title}"
    run = runs.get(plan)
    yield _row(plan, run, plain)
    assert run.outputs == plain.outputs, f"other tokens than plain decoding: {run.outputs}, not {plain.outputs}"
    assert not run.faults, f"KV slots do not add up: {'; '.join(run.faults)}"
    return f"{run.tokens} tokens are those of plain decoding"


def _chain_is_dflash(runs: Runs) -> str:
    dflash, tree = runs.get(Plan(DFLASH)), runs.get(CHAIN_SHAPED)
    found, expected = tree.accept_lengths, dflash.accept_lengths
    assert found == expected, f"{CHAIN_SHAPED.title} accepts {found}, DFLASH {expected}"
    return f"equal in {dflash.steps} steps"


def _spine(runs: Runs) -> str:
    details = []
    for plan in (plan for plan in TREES if plan.spine):
        run = runs.get(plan)
        pairs = zip(chain.from_iterable(run.accept_lengths), chain.from_iterable(run.chain_lengths), strict=True)
        less = [f"{tree} tokens, not {dflash}" for tree, dflash in pairs if tree < dflash]
        assert not less, f"{plan.title}: steps emitted less than DFLASH would have: {less}"
        details.append(f"{plan.title}: {run.steps} steps")
    return ", ".join(details)


def _fewer_forwards(runs: Runs) -> str:
    dflash = runs.get(Plan(DFLASH)).steps
    steps = {plan.title: runs.get(plan).steps for plan in TREES if plan.budget > CHAIN_SHAPED.budget}
    for title, count in steps.items():
        assert count < dflash, f"{title} needs {count} target forwards, DFLASH {dflash}"
    return f"DFLASH {dflash}, " + ", ".join(f"{title} {count}" for title, count in steps.items())


def _run(plan: Plan) -> Run:
    """In a fork. The start-up self-check runs as on a server, unless the environment switches it off."""
    preload()
    variables = {"SGLANG_DDTREE_SPINE": str(int(plan.spine))}
    if plan.kind and not has_gpu():
        variables |= FLOAT32_STATES
    outcome = call_in_fork(partial(run_models, plan), RUN_LIMIT, variables)
    if outcome.error:
        raise _failure(plan, outcome)
    return Run(**outcome.value)


def _failure(plan: Plan, outcome: Outcome) -> Exception:
    """A fork that could not import a third-party package cannot run the check: it did not fail it."""
    last = outcome.error.strip().splitlines()[-1]
    kind, _, package = last.partition("No module named ")
    if kind == "ModuleNotFoundError: ":
        return ModuleNotFoundError(last, name=package.strip("'"))
    return RuntimeError(f"{plan.title}: {outcome.error}\n{outcome.printed}")


def _row(plan: Plan, run: Run, plain: Run) -> dict[str, object]:
    is_tree = plan.algorithm == DDTREE
    return {
        "algorithm": plan.algorithm,
        "budget": plan.budget if is_tree else None,
        "topk": plan.topk if is_tree else None,
        "spine": plan.spine if is_tree else None,
        "tokens": run.tokens,
        "equal": run.outputs == plain.outputs,
        "target forwards": run.steps or run.tokens - len(run.outputs),
        "acceptance length": round(run.acceptance_length, 2),
    }
