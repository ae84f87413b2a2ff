"""The oracle itself, before anything is measured by it: on the trained pair, whose figures were recorded elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from oracles.decode import Chain, Limits, Sampled, Tree, decode_plainly, decode_speculatively
from oracles.dflash_models import Pair, load_pair

FOLDER = Path(__file__).parents[1] / "models" / "tiny-pair"
PROMPTS: list[Mapping[str, Any]] = json.loads((FOLDER / "prompts.json").read_text())
every_prompt = pytest.mark.parametrize("prompt", PROMPTS, ids=[prompt["name"] for prompt in PROMPTS])


@pytest.fixture(scope="module")
def pair() -> Pair:
    return load_pair(FOLDER)


@every_prompt
def test_greedy_tokens_are_the_recorded_ones(pair: Pair, prompt: Mapping[str, Any]) -> None:
    assert decode_plainly(pair.target, prompt["prompt"], Limits(64)).tokens == prompt["greedy"]


@every_prompt
def test_the_chain_takes_the_recorded_number_of_steps(pair: Pair, prompt: Mapping[str, Any]) -> None:
    decoded = decode_speculatively(pair, prompt["prompt"], Chain(), Limits(64))
    assert decoded.tokens == prompt["greedy"]
    assert decoded.verify_count == prompt["chain_verify_count"]


def test_the_chain_takes_334_steps_in_all() -> None:
    assert sum(prompt["chain_verify_count"] for prompt in PROMPTS) == 334


@every_prompt
def test_a_tree_of_one_candidate_and_the_budget_of_the_block_is_the_chain(
    pair: Pair, prompt: Mapping[str, Any]
) -> None:
    length = pair.drafter.block_size - 1
    chain = decode_speculatively(pair, prompt["prompt"], Chain(), Limits(32))
    for tree in (Tree(length, topk=1), Tree(length, topk=1, spine=True)):
        assert decode_speculatively(pair, prompt["prompt"], tree, Limits(32)) == chain


@every_prompt
def test_a_tree_decodes_the_same_tokens(pair: Pair, prompt: Mapping[str, Any]) -> None:
    for tree in (Tree(1), Tree(7), Tree(16, spine=True), Tree(40, topk=4)):
        assert decode_speculatively(pair, prompt["prompt"], tree, Limits(32)).tokens == prompt["greedy"][:32]


@every_prompt
def test_with_the_spine_no_step_accepts_less_than_the_chain_would(pair: Pair, prompt: Mapping[str, Any]) -> None:
    """At every step from the same state: the chain of its candidates, against the tokens that were decided."""
    decoded = decode_speculatively(pair, prompt["prompt"], Tree(16, spine=True), Limits(64))
    already = 1
    for step in decoded.steps:
        ahead = decoded.tokens[already:]
        matches = [row[0][0] == token for row, token in zip(step.candidates, ahead, strict=False)]
        chain = [*matches, False].index(False)
        assert step.accepted >= chain
        already += len(step.emitted)


def test_trees_take_fewer_steps_and_larger_ones_no_more(pair: Pair) -> None:
    def steps(proposal: Chain | Tree) -> int:
        return sum(decode_speculatively(pair, item["prompt"], proposal, Limits(64)).verify_count for item in PROMPTS)

    counts = [steps(proposal) for proposal in (Chain(), Tree(7), Tree(16), Tree(32))]
    assert counts == sorted(counts, reverse=True)
    assert counts[1] < counts[0] * 0.9
    assert counts[3] < counts[0] * 0.8


@every_prompt
def test_a_record_tells_what_happened(pair: Pair, prompt: Mapping[str, Any]) -> None:
    decoded = decode_speculatively(pair, prompt["prompt"], Tree(16), Limits(32))
    assert [token for step in decoded.steps for token in step.emitted] == decoded.tokens[1:]
    last = decoded.tokens[0]
    for step in decoded.steps:
        assert step.root == last == step.tree[0].token
        assert len(step.candidates) == pair.drafter.block_size - 1
        assert {len(row) for row in step.candidates} == {8}
        assert len(step.tree) == 17
        last = step.emitted[-1]
    assert all(len(step.emitted) == step.accepted + 1 for step in decoded.steps[:-1])


def test_a_stop_token_inside_an_accepted_path_ends_the_request(pair: Pair) -> None:
    prompt = PROMPTS[1]
    whole = decode_speculatively(pair, prompt["prompt"], Tree(16), Limits(32))
    second = whole.steps[1]
    assert second.accepted >= 2
    stop = second.emitted[1]
    place = prompt["greedy"].index(stop)
    for decoded in (
        decode_speculatively(pair, prompt["prompt"], Tree(16), Limits(32, frozenset({stop}))),
        decode_plainly(pair.target, prompt["prompt"], Limits(32, frozenset({stop}))),
    ):
        assert decoded.tokens == prompt["greedy"][: place + 1]


def test_extending_in_parts_is_extending_at_once(pair: Pair) -> None:
    """Keys, values, features and logits do not depend on how the tokens came."""
    tokens = PROMPTS[0]["prompt"][:40]
    whole = pair.target.extend(None, tokens)
    parts = pair.target.extend(pair.target.extend(pair.target.extend(None, tokens[:13]), tokens[13:14]), tokens[14:])
    torch.testing.assert_close(parts.features, whole.features, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(parts.logits, whole.logits, atol=1e-4, rtol=1e-4)
    for one, other in zip(parts.keys + parts.values, whole.keys + whole.values, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_sampling_is_the_same_with_and_without_speculation(pair: Pair) -> None:
    """The target is asked once a decided token, in order: so the same draws decide the same tokens."""

    def choose() -> Sampled:
        return Sampled(torch.Generator().manual_seed(7), temperature=0.9, top_k=20, top_p=0.95, min_p=0.02)

    for prompt in PROMPTS[::4]:
        plain = decode_plainly(pair.target, prompt["prompt"], Limits(24), choose())
        for proposal in (Chain(), Tree(16)):
            spoken = decode_speculatively(pair, prompt["prompt"], proposal, Limits(24), choose())
            assert spoken.tokens == plain.tokens
        assert plain.tokens != prompt["greedy"][:24]
