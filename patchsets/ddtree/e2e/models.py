"""Tiny random checkpoints: a Llama target and a DFlash draft model that is right now and then.

Random weights never agree by themselves. A few *hot* rows of the target's head are so much larger than the others that
both models choose among them alone: a draft token is then right about once in ``hot`` times, so that steps that accept
nothing, something and everything all occur, and a sibling is often right where the first choice is not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file  # type: ignore[import-not-found,unused-ignore]

Weights = dict[str, torch.Tensor]

HIDDEN = 64
HEAD_DIM = 64  # the smallest that FlashInfer takes
INTERMEDIATE = 128
TARGET_LAYERS = 2
DRAFT_LAYERS = 1
CAPTURED = (0,)  # the target layers that the drafter sees; the last one cannot be captured


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The two folders of a pair of models."""

    target: str
    draft: str


@dataclass(frozen=True, slots=True)
class TinyModels:
    """What a pair of random models looks like; the same values give the same weights."""

    seed: int = 5  # with it all acceptance lengths occur within some 40 steps, and trees often leave the chain
    block_size: int = 4  # of the drafter: it proposes one token less
    vocab: int = 256
    draft_vocab: int = 0  # what the draft's configuration claims; 0: the target's
    hot: int = 3  # rows of the head that win; at most the vocabulary
    first_hot: int = 0  # where these rows begin
    heads: int = 1  # of queries, keys and values; the cost of attention in the interpreter is proportional to it
    context: int = 512
    eos: int | None = None  # what the target's configuration names; None: an id that is never generated

    def write(self, folder: str | Path) -> Checkpoints:
        """Both checkpoints as ``folder/target`` and ``folder/draft``; takes about 50 ms."""
        random = torch.Generator().manual_seed(self.seed)
        target, draft = Path(folder) / "target", Path(folder) / "draft"
        _write(target, self._target_config(), self._target_weights(random))
        _write(draft, self._draft_config(), self._draft_weights(random))
        return Checkpoints(str(target), str(draft))

    def _target_config(self) -> dict[str, Any]:
        return {
            **self._config(self.vocab, TARGET_LAYERS),
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "bos_token_id": self.vocab - 3,
            "eos_token_id": self.vocab - 2 if self.eos is None else self.eos,
        }

    def _draft_config(self) -> dict[str, Any]:
        return {
            **self._config(self.draft_vocab or self.vocab, DRAFT_LAYERS),
            "architectures": ["DFlashDraftModel"],
            "model_type": "qwen3",
            "rope_theta": 1000000.0,  # what releases that do not find it in the configuration assume
            "num_target_layers": TARGET_LAYERS,
            "block_size": self.block_size,
            "dflash_config": {
                "mask_token_id": self.vocab - 1,  # needed where there is no tokenizer to ask
                "target_layer_ids": list(CAPTURED),
                "block_size": self.block_size,
            },
        }

    def _config(self, vocab: int, layers: int) -> dict[str, Any]:
        return {
            "hidden_size": HIDDEN,
            "intermediate_size": INTERMEDIATE,
            "num_hidden_layers": layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.heads,
            "head_dim": HEAD_DIM,
            "vocab_size": vocab,
            "max_position_embeddings": self.context,
            "rms_norm_eps": 1e-6,
            "rope_theta": 10000.0,
            "hidden_act": "silu",
            "tie_word_embeddings": False,
            "attention_bias": False,
            "torch_dtype": "float32",
        }

    def _target_weights(self, random: torch.Generator) -> Weights:
        head = _normal(random, self.vocab, HIDDEN, std=0.02)
        head[self.first_hot : self.first_hot + self.hot] = _normal(random, self.hot, HIDDEN, std=1.0)
        weights = {
            "model.embed_tokens.weight": _normal(random, self.vocab, HIDDEN, std=1.0),
            "model.norm.weight": torch.ones(HIDDEN),
            "lm_head.weight": head,
        }
        for index in range(TARGET_LAYERS):
            weights |= _layer(random, f"model.layers.{index}.", self.heads)
        return weights

    def _draft_weights(self, random: torch.Generator) -> Weights:
        """No embedding and no head: the drafter borrows the target's."""
        weights = {
            "fc.weight": _normal(random, HIDDEN, len(CAPTURED) * HIDDEN, std=0.1),
            "hidden_norm.weight": torch.ones(HIDDEN),
            "norm.weight": torch.ones(HIDDEN),
        }
        for index in range(DRAFT_LAYERS):
            prefix = f"layers.{index}."
            weights |= _layer(random, prefix, self.heads)
            weights[prefix + "self_attn.q_norm.weight"] = torch.ones(HEAD_DIM)
            weights[prefix + "self_attn.k_norm.weight"] = torch.ones(HEAD_DIM)
        return weights


def _layer(random: torch.Generator, prefix: str, heads: int) -> Weights:
    width = heads * HEAD_DIM
    shapes = {
        "self_attn.q_proj": (width, HIDDEN),
        "self_attn.k_proj": (width, HIDDEN),
        "self_attn.v_proj": (width, HIDDEN),
        "self_attn.o_proj": (HIDDEN, width),
        "mlp.gate_proj": (INTERMEDIATE, HIDDEN),
        "mlp.up_proj": (INTERMEDIATE, HIDDEN),
        "mlp.down_proj": (HIDDEN, INTERMEDIATE),
    }
    weights = {f"{prefix}{name}.weight": _normal(random, *shape, std=0.2) for name, shape in shapes.items()}
    for name in ("input_layernorm", "post_attention_layernorm"):
        weights[f"{prefix}{name}.weight"] = torch.ones(HIDDEN)
    return weights


def _normal(random: torch.Generator, *shape: int, std: float) -> torch.Tensor:
    return torch.randn(*shape, generator=random) * std


def _write(folder: Path, config: dict[str, Any], weights: Weights) -> None:
    folder.mkdir(parents=True)
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
