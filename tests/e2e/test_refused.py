"""What DDTREE cannot do is refused with its reason and a remedy: at the start of a server, or in a request's answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from engine_server import EngineServer
from scripts import Script, assert_sound, outputs, requests, tree_flags

from sglang_releases import SUPPORTED

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

BOTH_ENDS = pytest.mark.parametrize("version", [SUPPORTED[0], SUPPORTED[-1]])
BUDGET, TOPK, BACKEND = "--speculative-ddtree-budget", "--speculative-ddtree-topk", "--attention-backend"
TREE = tree_flags(16, 4)
WIDTH = 17
SLOTS = 96  # of a KV cache that is soon full
SMALL = (*TREE, "--max-total-tokens", str(SLOTS))

# The flags that are refused before a model is loaded, and what their user reads.
ARGUMENTS: dict[str, tuple[list[str], list[str]]] = {
    "budget-zero": ([BUDGET, "0"], [f"argument {BUDGET}: must be a positive integer, got '0'"]),
    "budget-negative": ([BUDGET, "-3"], [f"argument {BUDGET}: must be a positive integer, got '-3'"]),
    "budget-above-1024": ([BUDGET, "1025"], ["DDTREE", BUDGET, "at most 1024 tree nodes, got 1025"]),
    "budget-beyond-the-context": ([BUDGET, "255"], ["DDTREE", BUDGET, "context length of 256 tokens", "got 255"]),
    "topk-zero": ([TOPK, "0"], [f"argument {TOPK}: must be a positive integer, got '0'"]),
    "topk-above-the-vocabulary": ([TOPK, "257"], ["DDTREE", TOPK, "256 tokens, got 257"]),
    "page-size-16": (["--page-size", "16"], ["DDTREE supports only --page-size 1, got 16", "Use --page-size 1"]),
    **{
        f"backend-{name}": ([BACKEND, name], ["DDTREE", f"'{name}'", f"Use {BACKEND} flashinfer or triton"])
        for name in ("fa3", "torch_native", "trtllm_mha", "flashmla")
    },
    "block-size-1": (["--speculative-dflash-block-size", "1"], ["DDTREE", "block size of at least 2, got 1"]),
    "pipeline-parallel": (["--pp-size", "2"], ["DDTREE supports only --pp-size 1, got 2", "Use --tp-size"]),
    "data-parallel-attention": (
        ["--enable-dp-attention", "--tp-size", "2", "--dp-size", "2"],
        ["DDTREE does not support data-parallel attention", "Remove --enable-dp-attention"],
    ),
}
# Fields of a request, and how its answer begins. The first four are DFLASH's own refusals, in its words.
REQUESTS: dict[str, tuple[dict[str, Any], str]] = {
    "logprob": ({"fields": {"return_logprob": True}}, "DFLASH speculative decoding does not support return_logprob"),
    **{
        grammar: ({"sampling": {grammar: text}}, "DFLASH speculative decoding does not support grammar-constrained")
        for grammar, text in {"json_schema": "{}", "regex": "a+", "ebnf": 'root ::= "a"'}.items()
    },
    **{
        name: ({"sampling": {name: value}}, f"DDTREE speculative decoding does not support {name}")
        for name, value in {
            "frequency_penalty": 0.5,
            "presence_penalty": -0.5,
            "repetition_penalty": 1.2,
        }.items()
    },
}

Engines = Callable[..., EngineServer]
Play = Callable[..., dict[str, Any]]


def refusal(engine: EngineServer, place: str, flags: list[str], **models: int) -> str:
    """The words with which a server does not start."""
    found = engine.call("refused.start", flags=flags, models=models)
    assert found["place"] == place, found
    return str(found["message"])


@pytest.mark.parametrize("case", ARGUMENTS)
@pytest.mark.parametrize("version", SUPPORTED)
def test_a_server_with_these_arguments_does_not_start(version: str, case: str, engines: Engines) -> None:
    flags, words = ARGUMENTS[case]
    message = refusal(engines(version), "arguments", flags)
    for word in words:
        assert word in message, message


@pytest.mark.parametrize("version", SUPPORTED)
def test_a_draft_model_that_drafts_nothing(version: str, engines: Engines) -> None:
    message = refusal(engines(version), "arguments", [], block_size=1)
    assert "block size of at least 2, got 1" in message
    assert "--speculative-dflash-block-size" in message


@BOTH_ENDS
@pytest.mark.parametrize("size", [128, 320])
def test_a_draft_model_of_another_vocabulary(version: str, size: int, engines: Engines) -> None:
    message = refusal(engines(version), "engine", [], draft_vocab=size)
    assert f"the target has 256 tokens, the draft model was made for {size}" in message
    assert "Set --speculative-draft-model-path" in message


@BOTH_ENDS
def test_a_tree_that_is_larger_than_the_kv_cache(version: str, engines: Engines) -> None:
    message = refusal(engines(version), "engine", [*TREE, "--max-total-tokens", "16"])
    assert "17 nodes" in message and "16 KV cache slots" in message
    assert f"Lower {BUDGET}" in message


@BOTH_ENDS
def test_requests_are_refused_and_their_neighbours_are_served(version: str, play: Play) -> None:
    served = requests(tokens=4)
    refused = [{"name": name, "ids": [5, 6, 7], **fields} for name, (fields, _) in REQUESTS.items()]
    plain = play(version, "NONE", script=[{"requests": served}])
    tree = play(version, "DDTREE", *TREE, script=[{"requests": [*served[:2], *refused, *served[2:]]}])
    assert_sound(tree)
    answers = tree["rounds"][0]
    for name, (_, words) in REQUESTS.items():
        assert answers[name]["finish"] == "abort"
        assert answers[name]["message"].startswith(words)
    assert {name: output for name, output in outputs(tree).items() if name not in REQUESTS} == outputs(plain)


@BOTH_ENDS
def test_min_new_tokens_is_refused_too(version: str, engines: Engines, play: Play) -> None:
    served = requests(tokens=4)
    refused = {"name": "refused", "ids": [5, 6, 7], "sampling": {"min_new_tokens": 2}}
    answers = engines(version).call("refused.answer_with_a_tokenizer", requests=[refused, *served], flags=list(TREE))
    assert answers.pop("refused")["message"].startswith("DDTREE speculative decoding does not support min_new_tokens")
    plain = outputs(play(version, "NONE", script=[{"requests": served}]))
    assert {name: answer["output"] for name, answer in answers.items()} == plain


@BOTH_ENDS
def test_a_prompt_without_room_for_a_tree(version: str, play: Play) -> None:
    """One token less is served: its first tree takes the last slot of the KV cache."""
    longest = {"name": "longest", "ids": list(range(SLOTS - WIDTH)), "max_new_tokens": 2}
    longer = {**longest, "name": "too-long", "ids": list(range(SLOTS - WIDTH + 1))}
    script: Script = [{"requests": [longer, *requests(tokens=4)]}, {"requests": [longest]}]
    plain = play(version, "NONE", script=[{"requests": requests(tokens=4)}, {"requests": [longest]}])
    tree = play(version, "DDTREE", *SMALL, script=script)
    assert_sound(tree)
    answer = tree["rounds"][0]["too-long"]
    assert answer["finish"] == "abort"
    assert "80 input tokens and the 17 nodes of a draft tree are more than the 96 tokens" in answer["message"]
    assert f"smaller {BUDGET}" in answer["message"]
    assert {name: output for name, output in outputs(tree).items() if name != "too-long"} == outputs(plain)


@BOTH_ENDS
def test_a_request_that_runs_out_of_room_is_ended_by_sglang(version: str, play: Play) -> None:
    """Not a refusal, as nobody knows how much will be generated; the server goes on, with every slot free again."""
    long = {"name": "long", "ids": list(range(70)), "max_new_tokens": 20}
    script: Script = [{"requests": [long]}, {"requests": requests(tokens=4)}]
    plain = play(version, "NONE", script=script)
    tree = play(version, "DDTREE", *SMALL, script=script)
    assert_sound(tree)
    answer = tree["rounds"][0]["long"]
    assert answer["finish"] == "abort"
    assert answer["message"].startswith("Out of memory")
    assert answer["output"] == outputs(plain)["long"][: len(answer["output"])]
    assert {**outputs(tree), "long": []} == {**outputs(plain), "long": []}
