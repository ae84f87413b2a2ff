"""Sampled requests: the same draws as without speculation, and the target's own distribution."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import scenarios
import torch
from ddtree_patch_probe.engine import Request
from ddtree_patch_probe.hybrid_shims import rewrite

VOCABULARY = 12  # few enough that every pair of tokens is drawn often

Choices = Callable[[Any, torch.Tensor, torch.Tensor, int], torch.Tensor]  # [bs * W], of trees of a given width


def seeded(algorithm: str, requests: list[dict[str, Any]], flags: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Tokens and accept lengths of requests whose every draw is decided by their seed and its position.

    SGLang heeds seeds only in its deterministic mode, whose kernels need a GPU: here the sampler is given them anyway.
    """

    torch.compiler.set_stance("force_eager")  # it compiles the seeded draw, which the interpreter cannot take
    _heed_seeds()
    answers = scenarios.start(algorithm, flags).generate(*(Request(**fields) for fields in requests))
    return [{"output": answer.output, "accept_lengths": answer.accept_lengths} for answer in answers]


def _heed_seeds() -> None:
    with contextlib.suppress(ModuleNotFoundError):  # from 0.5.20 on; the kernel for the CPU is not there
        rewrite(importlib.import_module("sglang.kernels.ops.sampling.murmur_hash"), 'device.type == "cpu"', "False")
    from sglang.srt.sampling.sampling_batch_info import SamplingBatchInfo

    upstream = SamplingBatchInfo.from_schedule_batch

    def from_schedule_batch(_: type, batch: Any, *args: Any, **kwargs: Any) -> Any:
        info = upstream(batch, *args, **kwargs)
        seeds = [request.sampling_params.sampling_seed or 0 for request in batch.reqs]
        info.sampling_seed = torch.tensor(seeds, dtype=torch.int64, device=info.device)
        return info

    SamplingBatchInfo.from_schedule_batch = classmethod(from_schedule_batch)


def pairs(settings: list[dict[str, float]], draws: int, biased: bool = False) -> list[dict[str, list[list[float]]]]:
    """How often each pair of tokens is emitted, and how probable it is, for every setting: two [V, V].

    The runtime walks `draws` equal trees at once; what a tree does not decide, the next step does. With `biased`, the
    root accepts its best child with probability min(1, p / q), as if that had been drawn from the drafter's q.
    """
    runtime = scenarios.start("DDTREE").worker.ddtree

    def choices(info: Any, logits: torch.Tensor, positions: torch.Tensor, width: int) -> torch.Tensor:
        runtime.width = width
        chosen: torch.Tensor = runtime.choices(info, logits, positions).view(-1)
        return chosen

    torch.manual_seed(20260412)
    return [_pairs(choices, setting, draws, biased) for setting in settings]


def _pairs(choices: Choices, setting: dict[str, float], draws: int, biased: bool) -> dict[str, list[list[float]]]:
    from sglang.srt.speculative.ddtree_tree import ancestors, build_tree, top_candidates, walk

    generator = torch.Generator().manual_seed(7)
    first = torch.randn(VOCABULARY, generator=generator) * 1.5  # the target's logits for the first token
    second = torch.randn(VOCABULARY, VOCABULARY, generator=generator) * 1.5  # and for the second, by the first
    marginals = torch.stack([first, second.mean(0)]) + torch.randn(2, VOCABULARY, generator=generator)
    tokens, logprobs = top_candidates(marginals, 3)
    root = torch.zeros(draws, dtype=torch.int64)
    tree = build_tree(root, *(part.expand(draws, -1, -1) for part in (tokens, logprobs)), 6)
    # Below depth 1 the target answers by the token alone; what it says below depth 2 is not looked at.
    logits = torch.where((tree.depths == 0)[..., None], first, second[tree.tokens])
    width = tree.tokens.shape[1]
    info = _sampling_info(setting, draws)
    chosen = choices(info, logits.reshape(-1, VOCABULARY).clone(), torch.arange(draws * width), width).view(draws, -1)
    if biased:
        chosen[:, 0] = _min_one_p_over_q(chosen[:, 0], first, tokens[0, 0], logprobs[0, 0], setting)
    path = walk(tree, ancestors(tree), chosen)
    emitted = tree.tokens.gather(1, path.order[:, 1:3])
    one = torch.where(path.lengths >= 2, emitted[:, 0], path.bonus)
    after = choices(info, second[one].clone(), torch.arange(draws), 1)
    two = torch.where(path.lengths >= 3, emitted[:, 1], torch.where(path.lengths == 2, path.bonus, after))
    counts = torch.bincount(one * VOCABULARY + two, minlength=VOCABULARY**2).view(VOCABULARY, VOCABULARY)
    expected = distribution(first, setting)[:, None] * torch.stack([distribution(row, setting) for row in second])
    return {"observed": counts.tolist(), "expected": (expected * draws).tolist()}


def _min_one_p_over_q(
    chosen: torch.Tensor, logits: torch.Tensor, token: torch.Tensor, logprob: torch.Tensor, setting: dict[str, float]
) -> torch.Tensor:
    share = float((distribution(logits, setting)[token] / logprob.exp()).clamp_max(1.0))
    return torch.where(torch.rand(chosen.shape) < share, token, chosen)


def distribution(logits: torch.Tensor, setting: dict[str, float]) -> torch.Tensor:
    """What SGLang's sampler draws from, [V] in float64: every filter looks at what the temperature alone gives."""
    sorted_probabilities, order = (logits.double() / setting.get("temperature", 1.0)).softmax(-1).sort(descending=True)
    keep = sorted_probabilities.cumsum(-1) - sorted_probabilities <= setting.get("top_p", 1.0)
    keep &= sorted_probabilities >= setting.get("min_p", 0.0) * sorted_probabilities[0]
    keep &= torch.arange(len(order)) < setting.get("top_k", len(order))
    kept = torch.where(keep, sorted_probabilities, 0.0)
    return torch.zeros_like(kept).scatter(0, order, kept / kept.sum())


def _sampling_info(setting: dict[str, float], size: int) -> Any:
    """SGLang's sampling parameters of `size` equal requests."""
    from sglang.srt.sampling.sampling_batch_info import SamplingBatchInfo

    everything = 1 << 30  # SGLang's word for "every token"
    fields = {
        "temperatures": torch.full((size, 1), setting.get("temperature", 1.0)),
        "top_ps": torch.full((size,), setting.get("top_p", 1.0)),
        "top_ks": torch.full((size,), int(setting.get("top_k", everything)), dtype=torch.int32),
        "min_ps": torch.full((size,), setting.get("min_p", 0.0)),
        "is_all_greedy": False,
        "is_any_greedy": False,  # from 0.5.16 on
        "need_top_p_sampling": "top_p" in setting,
        "need_top_k_sampling": "top_k" in setting,
        "need_min_p_sampling": "min_p" in setting,
        "vocab_size": VOCABULARY,
        "device": "cpu",
    }
    known = {field.name for field in dataclasses.fields(SamplingBatchInfo)}
    return SamplingBatchInfo(**{name: value for name, value in fields.items() if name in known})
