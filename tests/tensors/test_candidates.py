"""``top_candidates`` and its vocabulary-parallel twin: what the drafter's logits offer at a position."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from ddtree_tree import merge_shards, shard_candidates, top_candidates
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

BAD = [float("nan"), float("-inf")]
numbers = st.one_of(st.integers(-3, 3).map(float), st.floats(-30, 30, width=32), st.sampled_from(BAD))
rows = st.integers(1, 12).flatmap(
    lambda width: st.lists(st.lists(numbers, min_size=width, max_size=width), min_size=1, max_size=3)
)


def expected(row: list[float], k: int) -> tuple[list[int], list[float]]:
    """In double precision: the log-probs of a row under all of it, sorted by value and then by token."""
    logits = [value if math.isfinite(value) else -math.inf for value in row]
    total = math.fsum(map(math.exp, logits))
    order = sorted(range(len(row)), key=lambda token: (-logits[token], token))[:k]
    return order, [logits[token] - math.log(total) if total else -math.inf for token in order]


def check(logits: Tensor, k: int, tokens: Tensor, logprobs: Tensor) -> None:
    assert tokens.dtype == torch.int64
    assert logprobs.dtype == torch.float32
    for number, row in enumerate(logits.tolist()):
        order, values = expected(row, k)
        finite = [place for place, value in enumerate(values) if math.isfinite(value)]
        assert tokens[number].tolist()[: len(finite)] == order[: len(finite)]
        assert logprobs[number].tolist() == pytest.approx(values, abs=1e-4)
        assert (logprobs[number] <= 0).all()


@given(rows, st.integers(1, 12))
def test_the_best_tokens_with_their_share_of_the_whole_vocabulary(values: list[list[float]], k: int) -> None:
    logits = torch.tensor(values)
    k = min(k, logits.shape[1])
    check(logits, k, *top_candidates(logits, k))


@given(rows, st.integers(1, 12), st.integers(2, 5), st.integers(0, 2**32))
def test_shards_of_the_vocabulary_together_give_what_the_whole_gives(
    values: list[list[float]], k: int, ranks: int, seed: int
) -> None:
    """Shards of any width, empty ones too, as where the vocabulary does not divide by the ranks."""
    logits = torch.tensor(values)
    width = logits.shape[1]
    k = min(k, width)
    inner = torch.randint(0, width + 1, (ranks - 1,), generator=torch.Generator().manual_seed(seed)).sort().values
    cuts = [0, *inner.tolist(), width]
    found = []
    for begin, end in pairwise(cuts):
        columns, best, lse = shard_candidates(logits[:, begin:end], k)
        found.append((columns + begin, best, lse))
    tokens, logprobs = merge_shards(*(torch.stack(part) for part in zip(*found, strict=True)), k)
    check(logits, k, tokens, logprobs)
    whole_tokens, whole_logprobs = top_candidates(logits, k)
    finite = whole_logprobs.isfinite()
    assert torch.equal(tokens[finite], whole_tokens[finite])
    assert torch.allclose(logprobs[finite], whole_logprobs[finite], atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_equal_logits_go_by_token_in_every_width_of_float(dtype: torch.dtype) -> None:
    """bfloat16 makes many logits equal; ``torch.topk`` alone leaves open which of them it takes."""
    logits = (torch.randn(4, 5000, generator=torch.Generator().manual_seed(0)) * 0.5).to(dtype)
    tokens, logprobs = top_candidates(logits, 64)
    exact = logits.double()
    order = exact.sort(dim=-1, descending=True, stable=True).indices[:, :64]
    assert torch.equal(tokens, order)
    assert torch.allclose(logprobs.double(), exact.log_softmax(-1).gather(1, order), atol=1e-5)


def test_negative_zero_is_zero() -> None:
    tokens, _ = top_candidates(torch.tensor([[-0.0, 0.0, -0.0, -1.0]]), 3)
    assert tokens.tolist() == [[0, 1, 2]]


def test_log_probs_are_not_scaled_to_the_candidates() -> None:
    """Two candidates of a uniform vocabulary of 1000 have a thousandth each, not a half."""
    _, logprobs = top_candidates(torch.zeros(1, 1000), 2)
    assert logprobs.tolist() == [pytest.approx([-math.log(1000)] * 2)]


def test_large_logits_do_not_overflow() -> None:
    tokens, logprobs = top_candidates(torch.tensor([[3.0e38, 1.0, -3.0e38]]), 2)
    assert tokens.tolist() == [[0, 1]]
    assert logprobs[0, 0] == 0
    assert not logprobs.isnan().any()


@pytest.mark.parametrize("bad", [*BAD, float("inf")])
def test_what_is_not_finite_is_never_better_than_what_is(bad: float) -> None:
    """SGLang issue 7477: NaN from a drafter led to an invalid tree."""
    tokens, logprobs = top_candidates(torch.tensor([[bad, -5.0, bad, -6.0]]), 3)
    assert tokens[0, :2].tolist() == [1, 3]
    assert logprobs[0, :2].isfinite().all()
    assert logprobs[0, 2] == float("-inf")


@pytest.mark.parametrize("bad", BAD)
def test_a_row_of_nothing_has_no_candidates(bad: float) -> None:
    _, logprobs = top_candidates(torch.full((1, 5), bad), 3)
    assert logprobs.tolist() == [[float("-inf")] * 3]


def test_more_candidates_than_tokens_leave_the_rest_empty() -> None:
    tokens, logprobs = top_candidates(torch.tensor([[1.0, 2.0, 1.0]]), 5)
    assert tokens.shape == logprobs.shape == (1, 5)
    assert tokens[0, :3].tolist() == [1, 0, 2]
    assert logprobs[0].isfinite().tolist() == [True, True, True, False, False]
    assert (logprobs[0, 3:] == float("-inf")).all()
