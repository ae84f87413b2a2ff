"""Two ranks over gloo, each with a part of the vocabulary and half of the heads: one tree, one path, the right tokens.

What the ranks build and accept is compared whole and step by step: between them, and with what one rank alone does.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_server import EngineServer, InsideError
from scripts import PROMPTS, Run, Script, requests, tree_flags

from sglang_releases import BEFORE_OVERLAP, OVERLAPPING

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

VERSIONS = BEFORE_OVERLAP[-1], OVERLAPPING[-1]
TOPK = 4
TREE = tree_flags(8, TOPK)
# The tokens that win are on both sides of the border between the parts: two before it, and two after.
HOT = {"hot": 4, "heads": 2}
EVEN = {**HOT, "vocab": 256, "first_hot": 126, "seed": 36}
ODD = {
    **HOT,
    "vocab": 67,
    "first_hot": 62,
    "seed": 30,
}  # the second part has fewer tokens than candidates
PARTS = {256: [[0, 128], [128, 256]], 67: [[0, 64], [64, 67]]}
FEW = 3  # batches: the prefill, and two verify steps
SAMPLED = {0: {"temperature": 1.0}, 2: {"temperature": 0.8, "top_p": 0.9}}  # which of the four requests, and how

Models = dict[str, int]
Group = Callable[..., list[Run]]


@pytest.fixture
def group(engines: Callable[..., EngineServer]) -> Group:
    """``group(version, ranks, algorithm, models, …)``: what ``inside/tensor_parallel.play`` gives."""

    def run(version: str, ranks: int, algorithm: str, models: Models, check: str = "0", **arguments: Any) -> list[Run]:
        value = engines(version).call(
            "tensor_parallel.play",
            {"SGLANG_DDTREE_SELF_CHECK": check},
            ranks=ranks,
            algorithm=algorithm,
            models=models,
            flags=[] if algorithm == "NONE" else list(TREE),
            **arguments,
        )
        assert isinstance(value, list) and len(value) == ranks
        return value

    return run


@pytest.mark.shows("tensor-parallel")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("models", [EVEN, ODD], ids=["even", "odd"])
def test_two_ranks_do_what_one_does(version: str, models: Models, group: Group) -> None:
    script = _script(models)
    first, second = group(version, 2, "DDTREE", models, check="1", script=script)
    (alone,) = group(version, 1, "DDTREE", models, script=script)
    (plain,) = group(version, 1, "NONE", models, script=script)
    for rank in (first, second):
        assert rank["steps"] == alone["steps"]
        assert rank["accept_lengths"] == alone["accept_lengths"]
        assert rank["outputs"] == alone["outputs"] == plain["outputs"]
        assert rank["faults"] == rank["double_frees"] == []
        (line,) = [line for line in rank["logs"] if "self-check" in line]
        assert line.startswith("INFO DDTREE: self-check passed on TritonAttnBackend: 2 requests, 9 nodes")
    parts = [first["part"], second["part"]]
    assert parts == PARTS[models["vocab"]]
    assert_not_vacuous(first, parts)


@pytest.mark.parametrize("version", VERSIONS)
def test_ranks_whose_draws_differ_take_those_of_rank_0(version: str, group: Group) -> None:
    """Sampled and greedy requests in one batch; every rank draws at the nodes with a generator of its own."""
    first, second = group(version, 2, "DDTREE", ODD, script=_sampled(), plant="draw_apart")
    assert first["steps"] == second["steps"]
    assert first["accept_lengths"] == second["accept_lengths"]
    assert first["outputs"] == second["outputs"]
    assert any(len(batch[place]["path"]) > 1 for batch in first["steps"][:FEW] for place in SAMPLED)


@pytest.mark.parametrize("fault", ["rank_1_takes_its_own_part", "rank_1_takes_its_own_log_sum_exp"])
def test_a_rank_with_candidates_of_its_own_is_seen(fault: str, group: Group) -> None:
    first, second = group(VERSIONS[-1], 2, "DDTREE", EVEN, script=_script(EVEN), plant=fault, batches=FEW)
    assert len(first["steps"]) == len(second["steps"]) == FEW - 1
    assert first["steps"][0] != second["steps"][0]


def test_ranks_that_agree_on_wrong_probabilities_are_seen(group: Group) -> None:
    few = {"script": _script(EVEN), "batches": FEW}
    first, second = group(VERSIONS[-1], 2, "DDTREE", EVEN, plant="all_normalise_before_they_merge", **few)
    (alone,) = group(VERSIONS[-1], 1, "DDTREE", EVEN, **few)
    assert first["steps"] == second["steps"]
    assert first["steps"][0] != alone["steps"][0]


def test_draws_that_are_not_shared_are_seen(group: Group) -> None:
    plant = "draw_apart_and_keep_it"
    first, second = group(VERSIONS[-1], 2, "DDTREE", ODD, script=_sampled(), plant=plant, batches=FEW)
    # In the first step: after it, the ranks' halves of the hidden states no longer fit.
    differ = [ours != theirs for ours, theirs in zip(first["steps"][0], second["steps"][0], strict=True)]
    assert any(differ)
    assert [place for place, differs in enumerate(differ) if differs and place not in SAMPLED] == []


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("crash", ["rank 1: it ended with status -11"]),
        ("leave", ["rank 1: Traceback", "has to go"]),
        ("hang", ["no answer of rank 0 and rank 1 within 4 seconds", "Timeout (0:00:02)!", "misbehave.py"]),
    ],
)
def test_a_group_that_gives_no_answer_is_explained_and_gone(
    what: str, said: list[str], engines: Callable[..., EngineServer]
) -> None:
    with pytest.raises(InsideError) as caught:
        seconds = 4.0 if what == "hang" else 60.0
        engines(VERSIONS[-1]).call("tensor_parallel_misbehave.rank_1_does", what=what, seconds=seconds)
    for words in said:
        assert words in str(caught.value)
    assert_gone(str(caught.value))


def test_no_rank_outlives_whoever_started_it(engines: Callable[..., EngineServer]) -> None:
    engine = engines(VERSIONS[-1])
    with pytest.raises(InsideError, match="no answer within 2 seconds") as caught:
        engine.call("tensor_parallel_misbehave.ranks_hang", time_limit=2.0)
    assert_gone(str(caught.value))


def assert_not_vacuous(run: Run, parts: list[list[int]]) -> None:
    """Tokens of both parts were drafted in one tree, and accepted; and paths of several lengths were."""
    borders = [range(*part) for part in parts]
    steps = [step for batch in run["steps"] for step in batch]
    trees = [{node["token"] for node in step["nodes"][1:]} for step in steps]
    accepted = {step["nodes"][place]["token"] for step in steps for place in step["path"][1:]}
    assert any(all(tree & set(part) for part in borders) for tree in trees)
    assert all(accepted & set(part) for part in borders)
    assert len({len(step["path"]) for step in steps}) > 2


def assert_gone(printed: str) -> None:
    """Both ranks, who printed their process ids; one whose parent was killed may take a moment."""
    processes = re.findall(r"rank \d is process (\d+)", printed)
    assert len(processes) == 2
    deadline = time.monotonic() + 20.0
    while alive := [process for process in processes if _is_alive(process)]:
        assert time.monotonic() < deadline, f"still there: {alive}"
        time.sleep(0.05)


def _is_alive(process: str) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _script(models: Models) -> Script:
    """Four unequal prompts at once, of tokens that the models have."""
    asked = requests(tokens=8)
    for request, ids in zip(asked, PROMPTS, strict=True):
        request["ids"] = [token % models["vocab"] for token in ids]
    return [{"requests": asked}]


def _sampled() -> Script:
    """The same, of which two sample."""
    script = _script(ODD)
    for place, sampling in SAMPLED.items():
        script[0]["requests"][place]["sampling"] = sampling
    return script
