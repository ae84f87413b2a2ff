"""What is asked of engines, and what holds for every run."""

from __future__ import annotations

from typing import Any

from engine_server import EngineServer

BLOCK = 4  # of the tiny drafter
ALONE = [3] * 20 + [6, 7, 8]  # shares the prefix of a prompt
PROMPTS = ([5, 6, 7, 8, 9, 10, 11], [100, 101, 102], [3] * 20 + [4, 5], [200, 17, 33, 40])

Script = list[dict[str, Any]]
Run = dict[str, Any]


def tree_flags(budget: int, topk: int) -> tuple[str, ...]:
    return "--speculative-ddtree-budget", str(budget), "--speculative-ddtree-topk", str(topk)


def requests(prefix: str = "r", tokens: int = 16, **more: Any) -> list[dict[str, Any]]:
    """One request for each prompt, run together."""
    return [
        {"name": f"{prefix}{index}", "ids": list(ids), "max_new_tokens": tokens, **more}
        for index, ids in enumerate(PROMPTS)
    ]


def unequal_and_shared() -> Script:
    """A batch of four unequal prompts, then one alone that shares the prefix of an earlier one."""
    alone = {"name": "s0", "ids": ALONE, "max_new_tokens": 12}
    return [{"requests": requests()}, {"requests": [alone]}]


def outputs(run: Run) -> dict[str, list[int]]:
    """The tokens of every request of every round."""
    return {name: answer["output"] for round_ in run["rounds"] for name, answer in round_.items()}


def accept_lengths(run: Run) -> dict[str, list[int]]:
    return {name: answer["accept_lengths"] for round_ in run["rounds"] for name, answer in round_.items()}


def steps(run: Run) -> int:
    """Verify steps of all requests together."""
    return sum(map(len, accept_lengths(run).values()))


def assert_sound(run: Run) -> None:
    """After every step each KV page was in one place; none was freed twice; SGLang's counts are those of the steps."""
    assert run["faults"] == []
    assert run["double_frees"] == []
    for round_ in run["rounds"]:
        for answer in round_.values():
            lengths = answer["accept_lengths"]
            assert answer["verify_count"] == len(lengths), answer
            assert answer["accepted_drafts"] == sum(lengths) - len(lengths) + answer["cut"], answer
            assert answer["cut"] >= 0, answer


def compare_kv(engine: EngineServer, plant: str = "") -> dict[str, Any]:
    """What ``inside/kv.compare`` gives for a batch of trees."""
    environment = {"SGLANG_DDTREE_SELF_CHECK": "0"}
    flags = list(tree_flags(16, 4))
    value = engine.call("kv.compare", environment, requests=requests(tokens=10), flags=flags, plant=plant)
    assert isinstance(value, dict)
    return value
