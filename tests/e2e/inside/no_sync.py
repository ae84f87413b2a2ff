"""Whether the tree's part of a step makes the host wait, under a guard; and offences that are planted into it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import scenarios
import torch
from ddtree_patch_probe.engine import Engine, Request
from guard import Guard

OURS = "/speculative/ddtree_"  # the modules that the patch adds

# Each would make a step wait, or a shape depend on data.
PLANTED = {
    "item": "order[0, 0].item()",
    "cpu": "order.cpu()",
    "to the host": "order.to('cpu')",
    "tolist": "order.tolist()",
    "truth": "bool((order > 0).all())",
    "number": "int(order.max())",
    "index": "[1, 2, 3][order.min()]",
    "numpy": "order.numpy()",
    "nonzero": "order.nonzero()",
    "where": "torch.where(order > 0)",
    "mask": "order[order > 0]",
    "assignment by mask": "order.clone().__setitem__(order > 0, order[0, 0])",
    "masked_select": "order.masked_select(order > 0)",
    "unique": "order.unique()",
    "repeat": "order.repeat_interleave(order[0], dim=1)",
    "comparison": "torch.equal(order, order + 1)",
}
# And these would not.
HARMLESS = {
    "known repeat": "order.repeat_interleave(2, dim=0)",
    "gather": "order.gather(1, order)",
    "masked_fill": "order.masked_fill(order > 0, 0)",
    "index_select": "order[:, order[0]]",
    "host length": "int(lens.sum()) + max(lens.tolist())",
}


def watch(requests: list[dict[str, Any]], flags: Sequence[str] = ()) -> dict[str, Any]:
    """The offences of a whole run, and how many operations were looked at."""
    engine = scenarios.start("DDTREE", flags)
    guard = _guard(engine)
    answers = engine.generate(*(Request(**fields) for fields in requests))
    return {
        "offences": guard.offences,
        "seen": guard.seen,
        "accept_lengths": [answer.accept_lengths for answer in answers],
    }


def planted() -> dict[str, dict[str, list[str]]]:
    """The offences of every expression of ``PLANTED`` and ``HARMLESS``, evaluated as in a module of the patch."""
    return {
        kind: {name: _offences(expression) for name, expression in expressions.items()}
        for kind, expressions in (("planted", PLANTED), ("harmless", HARMLESS))
    }


def _offences(expression: str) -> list[str]:
    code = compile(f"def planted(torch, order, lens): return {expression}", f"{OURS}planted.py", "exec")
    scope: dict[str, Any] = {}
    exec(code, scope)
    guard, lens = Guard(OURS), torch.tensor([3, 4])
    guard.declare_host(lens)
    with guard:
        scope["planted"](torch, torch.tensor([[2, 0, 1]]), lens)
    return guard.offences


def planted_in_a_step(requests: list[dict[str, Any]], flags: Sequence[str] = ()) -> dict[str, Any]:
    """As ``watch``, with a wait in the function that accepts a path."""
    from sglang.srt.speculative import ddtree_worker

    upstream, scope = ddtree_worker.walk, {}
    code = "def walk(*trees):\n    path = upstream(*trees)\n    path.lengths[0].item()\n    return path"
    exec(compile(code, str(ddtree_worker.__file__), "exec"), {"upstream": upstream}, scope)
    ddtree_worker.walk = scope["walk"]
    return watch(requests, flags)


def _guard(engine: Engine) -> Guard:
    """Entered while a batch decodes. What the scheduler says of lengths on the host is the host's."""
    from sglang.srt.speculative.dflash_info import DDTreeVerifyInput

    guard = Guard(OURS)
    upstream = DDTreeVerifyInput.prepare_for_verify

    def prepare_for_verify(verify_input: Any, batch: Any, *args: Any, **kwargs: Any) -> Any:
        guard.declare_host(batch.seq_lens_cpu)
        return upstream(verify_input, batch, *args, **kwargs)

    def enter(batch: Any) -> None:
        if batch.forward_mode.is_decode():
            guard.__enter__()

    def leave(batch: Any) -> None:
        if batch.forward_mode.is_decode() or batch.forward_mode.is_target_verify():
            guard.__exit__(None, None, None)

    DDTreeVerifyInput.prepare_for_verify = prepare_for_verify
    engine.before_batch.append(enter)
    engine.after_batch.append(leave)
    return guard
