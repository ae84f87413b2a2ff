"""The two models in plain torch, in float32 on the CPU, read from ``config.json`` and ``model.safetensors``.

The target is a Llama (or a Qwen3, which also normalises queries and keys). The drafter is DFlash's: its context is not
tokens but the target's hidden states of some layers, projected to keys and values; its queries are one block, the root
token followed by mask tokens, every position of which sees the context and the whole block. It has no embedding and no
head: it uses the target's.

No cache survives inside the models. The target's keys and values are the caller's :class:`TargetState`, which only
grows by whole calls of :meth:`Target.extend`; the drafter computes its whole context anew for every block.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional

Config = dict[str, Any]
Weights = dict[str, Tensor]


@dataclass(frozen=True)
class TargetState:
    """What the target knows of the tokens so far. A value: extending it leaves it as it is."""

    keys: tuple[Tensor, ...]  # layer → [tokens, kv heads, head size], rotated
    values: tuple[Tensor, ...]  # layer → [tokens, kv heads, head size]
    features: Tensor  # [tokens, captured layers x hidden size]: what the drafter's context is made of
    logits: Tensor  # [vocabulary], after the last token

    @property
    def length(self) -> int:
        return len(self.features)


class Target:
    """A causal language model that also hands out the outputs of some of its layers."""

    def __init__(self, folder: Path, captured_layers: Sequence[int] = ()) -> None:
        config, weights = _read(folder)
        self.captured_layers = tuple(captured_layers)
        self.embedding = weights["model.embed_tokens.weight"]
        self.head = self.embedding if config.get("tie_word_embeddings") else weights["lm_head.weight"]
        self._norm, self._eps = weights["model.norm.weight"], config["rms_norm_eps"]
        self._layers = [_Layer(config, weights, f"model.layers.{i}.") for i in range(config["num_hidden_layers"])]

    @torch.inference_mode()
    def extend(self, state: TargetState | None, tokens: Sequence[int]) -> TargetState:
        """The state after these tokens (at least one) follow those of ``state``."""
        past = state.length if state else 0
        hidden = self.embedding[torch.tensor(tokens)]
        positions = torch.arange(past, past + len(tokens))
        visible = torch.arange(past + len(tokens)) <= positions[:, None]
        keys, values, captured = [], [], []
        for number, layer in enumerate(self._layers):
            key, value = layer.keys_and_values(layer.before_attention(hidden), positions)
            if state:
                key, value = torch.cat([state.keys[number], key]), torch.cat([state.values[number], value])
            hidden = layer(hidden, positions, key, value, visible)
            keys.append(key)
            values.append(value)
            if number in self.captured_layers:
                captured.append(hidden)
        features = torch.cat(captured, dim=-1) if captured else hidden[:, :0]
        if state:
            features = torch.cat([state.features, features])
        logits = _rms_norm(hidden[-1], self._norm, self._eps) @ self.head.T
        return TargetState(tuple(keys), tuple(values), features, logits)


class Drafter:
    """One block-diffusion forward: the log-probs of every position that follows the root."""

    def __init__(self, folder: Path, target_embedding: Tensor, target_head: Tensor) -> None:
        config, weights = _read(folder)
        self._embedding, self._head = target_embedding, target_head
        self._mask_token = config["dflash_config"]["mask_token_id"]
        self.block_size = config["dflash_config"].get("block_size") or config["block_size"]
        self._projection, self._context_norm = weights["fc.weight"], weights["hidden_norm.weight"]
        self._norm, self._eps = weights["norm.weight"], config["rms_norm_eps"]
        self._layers = [_Layer(config, weights, f"layers.{i}.") for i in range(config["num_hidden_layers"])]

    @torch.inference_mode()
    def logprobs(self, features: Tensor, root: int) -> Tensor:
        """[block size − 1, vocabulary]: row i is for the token i + 1 places after ``root``.

        ``features`` are the target's for every token before the root; the root's own are not known yet.
        """
        context = _rms_norm(features @ self._projection.T, self._context_norm, self._eps)
        before = torch.arange(len(context))
        block = torch.arange(len(context), len(context) + self.block_size)
        hidden = self._embedding[torch.tensor([root] + [self._mask_token] * (self.block_size - 1))]
        for layer in self._layers:
            context_key, context_value = layer.keys_and_values(context, before)
            key, value = layer.keys_and_values(layer.before_attention(hidden), block)
            key, value = torch.cat([context_key, key]), torch.cat([context_value, value])
            hidden = layer(hidden, block, key, value, torch.ones(len(block), len(key), dtype=torch.bool))
        logits = _rms_norm(hidden[1:], self._norm, self._eps) @ self._head.T
        return logits.log_softmax(-1)


@dataclass(frozen=True)
class Pair:
    """A target and the drafter that was trained for it."""

    target: Target
    drafter: Drafter


def load_pair(folder: Path) -> Pair:
    """The pair in ``folder/target`` and ``folder/draft``."""
    config = json.loads((folder / "draft" / "config.json").read_text())
    target = Target(folder / "target", config["dflash_config"]["target_layer_ids"])
    return Pair(target, Drafter(folder / "draft", target.embedding, target.head))


class _Layer:
    """One decoder layer, with attention over keys and values that the caller puts together."""

    def __init__(self, config: Config, weights: Weights, prefix: str) -> None:
        self._weights = {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}
        self._eps, self._theta = config["rms_norm_eps"], config["rope_theta"]
        self._heads, self._kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        self._size = config.get("head_dim") or config["hidden_size"] // self._heads

    def before_attention(self, hidden: Tensor) -> Tensor:
        return self._normed(hidden, "input_layernorm")

    def keys_and_values(self, source: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """``source`` is a normed hidden state, or the drafter's projected context as it is."""
        key = self._linear(source, "self_attn.k_proj").view(-1, self._kv_heads, self._size)
        value = self._linear(source, "self_attn.v_proj").view(-1, self._kv_heads, self._size)
        return _rotated(self._normed(key, "self_attn.k_norm"), positions, self._theta), value

    def __call__(self, hidden: Tensor, positions: Tensor, key: Tensor, value: Tensor, visible: Tensor) -> Tensor:
        query = self._linear(self.before_attention(hidden), "self_attn.q_proj").view(-1, self._heads, self._size)
        query = _rotated(self._normed(query, "self_attn.q_norm"), positions, self._theta)
        hidden = hidden + self._linear(self._attention(query, key, value, visible), "self_attn.o_proj")
        inner = self._normed(hidden, "post_attention_layernorm")
        gate = functional.silu(self._linear(inner, "mlp.gate_proj"))
        return hidden + self._linear(gate * self._linear(inner, "mlp.up_proj"), "mlp.down_proj")

    def _attention(self, query: Tensor, key: Tensor, value: Tensor, visible: Tensor) -> Tensor:
        group = self._heads // self._kv_heads
        key, value = key.repeat_interleave(group, dim=1), value.repeat_interleave(group, dim=1)
        scores = torch.einsum("qhd,khd->hqk", query, key) / self._size**0.5
        weights = scores.masked_fill(~visible, float("-inf")).softmax(-1)
        return torch.einsum("hqk,khd->qhd", weights, value).reshape(len(query), -1)

    def _linear(self, source: Tensor, name: str) -> Tensor:
        return functional.linear(source, self._weights[f"{name}.weight"], self._weights.get(f"{name}.bias"))

    def _normed(self, source: Tensor, name: str) -> Tensor:
        """As it is where the model has no such norm, as Llama has none for queries and keys."""
        weight = self._weights.get(f"{name}.weight")
        return source if weight is None else _rms_norm(source, weight, self._eps)


def _rms_norm(source: Tensor, weight: Tensor, eps: float) -> Tensor:
    return source * torch.rsqrt(source.square().mean(-1, keepdim=True) + eps) * weight


def _rotated(heads: Tensor, positions: Tensor, theta: float) -> Tensor:
    """Rotary position embedding over the two halves of a head, as Llama has it."""
    half = heads.shape[-1] // 2
    frequencies = theta ** (-torch.arange(half, dtype=torch.float32) / half)
    angles = (positions[:, None].float() * frequencies)[:, None, :]
    cosine, sine = angles.cos(), angles.sin()
    one, other = heads[..., :half], heads[..., half:]
    return torch.cat([one * cosine - other * sine, other * cosine + one * sine], dim=-1)


def _read(folder: Path) -> tuple[Config, Weights]:
    """Refuses what this module would compute wrongly without an error."""
    config = json.loads((folder / "config.json").read_text())
    if config.get("rope_scaling") or config.get("hidden_act", "silu") != "silu" or config.get("sliding_window"):
        raise ValueError(f"{folder}: scaled rotary embeddings, sliding windows and activations but silu are not here")
    weights = {name: value.float() for name, value in load_file(folder / "model.safetensors").items()}
    return config, weights
