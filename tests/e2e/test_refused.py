"""What DDTREE cannot do is refused with its reason and a remedy: at the start of a server, or in a request's answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from engine_server import EngineServer
from scripts import Script, assert_sound, outputs, requests, tree_flags, unequal_and_shared

from sglang_releases import BEFORE_OVERLAP, ENDS, SUPPORTED, WITH_GRAMMAR, WITH_LOGPROBS

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
    **{
        f"backend-{name}": ([BACKEND, name], ["DDTREE", f"'{name}'", f"Use {BACKEND} flashinfer or triton"])
        for name in ("fa3", "torch_native", "trtllm_mha", "flashmla")
    },
    "block-size-1": (["--speculative-dflash-block-size", "1"], ["DDTREE", "block size of at least 2, got 1"]),
    "pipeline-parallel": (
        ["--pp-size", "2"],
        ["DDTREE does not support pipeline parallelism", "Use --pp-size 1", "got 2"],
    ),
    "data-parallel-attention": (
        ["--enable-dp-attention", "--tp-size", "2", "--dp-size", "2"],
        ["DDTREE does not support data-parallel attention", "--enable-dp-attention"],
    ),
}
# Fields of a request, and how its answer begins.
Requests = dict[str, tuple[dict[str, Any], str]]
PENALTIES = {"frequency_penalty": 0.5, "presence_penalty": -0.5, "repetition_penalty": 1.2}
REQUESTS: Requests = {
    name: ({"sampling": {name: value}}, f"DDTREE speculative decoding does not support {name}")
    for name, value in PENALTIES.items()
}
# What DFLASH itself refuses, in its words.
LOGPROBS: Requests = {
    "logprob": ({"fields": {"return_logprob": True}}, "DFLASH speculative decoding does not support return_logprob"),
}
GRAMMARS: Requests = {
    grammar: ({"sampling": {grammar: text}}, "DFLASH speculative decoding does not support grammar-constrained")
    for grammar, text in {"json_schema": "{}", "regex": "a+", "ebnf": 'root ::= "a"'}.items()
}

Engines = Callable[..., EngineServer]
Play = Callable[..., dict[str, Any]]


def refusal(engine: EngineServer, place: str, flags: list[str], **models: int) -> str:
    """The words with which a server does not start."""
    found = engine.call("refused.start", flags=flags, models=models)
    assert found["place"] == place, found
    return str(found["message"])


@pytest.fixture(scope="module")
def resolved(engines: Engines) -> Callable[[str], dict[str, dict[str, str]]]:
    """``resolved(version)``: how every case of ``ARGUMENTS`` ended; in one fork, as none of them gets far."""
    results: dict[str, dict[str, dict[str, str]]] = {}

    def get(version: str) -> dict[str, dict[str, str]]:
        if version not in results:
            cases = {case: flags for case, (flags, _) in ARGUMENTS.items()}
            results[version] = engines(version).call("refused.resolve_each", cases=cases)
        return results[version]

    return get


@pytest.mark.parametrize("case", ARGUMENTS)
@pytest.mark.parametrize("version", SUPPORTED)
def test_a_server_with_these_arguments_does_not_start(
    version: str, case: str, resolved: Callable[[str], dict[str, dict[str, str]]]
) -> None:
    found = resolved(version)[case]
    assert found["place"] == "arguments", found
    for word in ARGUMENTS[case][1]:
        assert word in found["message"], found


@pytest.mark.shows("page-size", refused=True)
@pytest.mark.parametrize("version", BEFORE_OVERLAP)
def test_pages_where_the_worker_allocates_slots(version: str, engines: Engines) -> None:
    """From 0.5.14 on they are served."""
    message = refusal(engines(version), "arguments", ["--page-size", "16"])
    assert "--page-size 1" in message and "got 16" in message


@pytest.mark.parametrize("version", ENDS)
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


@pytest.mark.shows("logprobs", refused=True)
@pytest.mark.parametrize("version", [version for version in SUPPORTED if version not in WITH_LOGPROBS])
def test_log_probabilities_that_dflash_does_not_give(version: str, play: Play) -> None:
    refuse_requests(version, LOGPROBS, play)


@pytest.mark.shows("grammar", refused=True)
@pytest.mark.parametrize("version", [version for version in SUPPORTED if version not in WITH_GRAMMAR])
def test_grammars_that_dflash_does_not_follow(version: str, play: Play) -> None:
    refuse_requests(version, GRAMMARS, play)


@BOTH_ENDS
def test_penalties(version: str, play: Play) -> None:
    refuse_requests(version, {}, play)


def refuse_requests(version: str, more: Requests, play: Play) -> None:
    """They are refused with these words, and their neighbours are served; where all are refused, in one engine."""
    cases = {
        **REQUESTS,
        **({} if version in WITH_LOGPROBS else LOGPROBS),
        **({} if version in WITH_GRAMMAR else GRAMMARS),
    }
    served = requests(tokens=4)
    refused = [{"name": name, "ids": [5, 6, 7], **fields} for name, (fields, _) in cases.items()]
    tree = play(version, "DDTREE", *TREE, script=[{"requests": [*served[:2], *refused, *served[2:]]}])
    assert_sound(tree)
    answers = tree["rounds"][0]
    for name, (_, words) in {**REQUESTS, **more}.items():
        assert answers[name]["finish"] == "abort"
        assert answers[name]["message"].startswith(words), answers[name]
    plain = outputs(play(version, "NONE", script=unequal_and_shared()))
    assert {name: output for name, output in outputs(tree).items() if name not in cases} == {
        request["name"]: plain[request["name"]][:4] for request in served
    }


@pytest.mark.parametrize("version", [BEFORE_OVERLAP[0], BEFORE_OVERLAP[-1]])
def test_min_new_tokens_is_refused_too(version: str, engines: Engines, play: Play) -> None:
    """From 0.5.14 on SGLang refuses it itself where there is no tokenizer, as here."""
    served = requests(tokens=4)
    refused = {"name": "refused", "ids": [5, 6, 7], "sampling": {"min_new_tokens": 2}}
    answers = engines(version).call("refused.answer_with_a_tokenizer", requests=[refused, *served], flags=list(TREE))
    assert answers.pop("refused")["message"].startswith("DDTREE speculative decoding does not support min_new_tokens")
    plain = outputs(play(version, "NONE", script=[{"requests": served}]))
    assert {name: answer["output"] for name, answer in answers.items()} == plain


@BOTH_ENDS
def test_a_prompt_without_room_for_a_tree(version: str, play: Play) -> None:
    """One token less is served: its first tree takes the last slot of the KV cache.

    Where batches overlap, the scheduler reserves the slots of two.
    """
    room = SLOTS - (WIDTH if version in BEFORE_OVERLAP else 2 * WIDTH)
    longest = {"name": "longest", "ids": list(range(room)), "max_new_tokens": 2}
    longer = {**longest, "name": "too-long", "ids": list(range(room + 1))}
    script: Script = [{"requests": [longer, *requests(tokens=4)]}, {"requests": [longest]}]
    plain = play(version, "NONE", script=[{"requests": requests(tokens=4)}, {"requests": [longest]}])
    tree = play(version, "DDTREE", *SMALL, script=script)
    assert_sound(tree)
    answer = tree["rounds"][0]["too-long"]
    assert answer["finish"] == "abort"
    for words in (f"{room + 1} input tokens", "17 nodes", "draft tree", "more than the 96"):
        assert words in answer["message"], answer
    assert f"smaller {BUDGET}" in answer["message"]
    assert {name: output for name, output in outputs(tree).items() if name != "too-long"} == outputs(plain)


@BOTH_ENDS
def test_a_request_that_runs_out_of_room_is_ended_by_sglang(version: str, play: Play) -> None:
    """Not a refusal, as nobody knows how much will be generated; the server goes on, with every slot free again."""
    room = SLOTS - 2 * WIDTH
    long = {"name": "long", "ids": list(range(room)), "max_new_tokens": 2 * WIDTH - 1}
    script: Script = [{"requests": [long]}, {"requests": requests(tokens=4)}]
    plain = play(version, "NONE", script=script)
    tree = play(version, "DDTREE", *SMALL, script=script)
    assert_sound(tree)
    answer = tree["rounds"][0]["long"]
    assert answer["finish"] == "abort"
    assert answer["message"].startswith("Out of memory")
    assert answer["output"] == outputs(plain)["long"][: len(answer["output"])]
    assert {**outputs(tree), "long": []} == {**outputs(plain), "long": []}
