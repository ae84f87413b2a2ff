"""A tiny target whose layers alternate between a recurrent state (a gated delta rule, as in Qwen3-Next) and attention.

It is the tiny Llama target of ``models`` in all that both have, and drafted for by the same drafter: only the first
and the last layer have other weights instead of those of their attention.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from ddtree_patch_probe.models import HIDDEN, INTERMEDIATE, TARGET_LAYERS, Checkpoints, TinyModels, Weights
from safetensors.torch import load_file, save_file

STATE = 16  # dimensions of a key and of a value: the smallest that the prefill's matrix products take
KERNEL = 4  # positions that the short convolution sees
RECURRENT_LAYERS = tuple(layer for layer in range(TARGET_LAYERS) if layer % 2 == 0)


def write(folder: str | Path) -> Checkpoints:
    """The target and its drafter as ``folder/target`` and ``folder/draft``."""
    checkpoints = TinyModels().write(folder)
    target = Path(checkpoints.target)
    config = json.loads((target / "config.json").read_text(encoding="utf-8"))
    (target / "config.json").write_text(json.dumps(config | _config()), encoding="utf-8")
    weights = _converted(load_file(str(target / "model.safetensors")))
    save_file(weights, str(target / "model.safetensors"), metadata={"format": "pt"})
    return checkpoints


def _config() -> dict[str, Any]:
    return {
        "architectures": ["Qwen3NextForCausalLM"],
        "model_type": "qwen3_next",
        "full_attention_interval": 2,
        "layer_types": [
            "linear_attention" if layer in RECURRENT_LAYERS else "full_attention" for layer in range(TARGET_LAYERS)
        ],
        "partial_rotary_factor": 0.25,
        "linear_num_key_heads": 1,
        "linear_num_value_heads": 1,
        "linear_key_head_dim": STATE,
        "linear_value_head_dim": STATE,
        "linear_conv_kernel_dim": KERNEL,
        "num_experts": 1,  # the architecture has experts in every layer: here the one is the multi-layer perceptron
        "num_experts_per_tok": 1,
        "norm_topk_prob": True,
        "moe_intermediate_size": INTERMEDIATE,
        "shared_expert_intermediate_size": 0,
    }


def _converted(llama: Weights) -> Weights:
    random = torch.Generator().manual_seed(5)
    weights: Weights = {}
    for name, weight in llama.items():
        layer = int(name.split(".")[2]) if ".layers." in name else -1
        if name.endswith("norm.weight"):
            weight = weight - 1.0  # this architecture adds one
        if ".mlp." in name:
            name = name.replace(".mlp.", ".mlp.experts.0.")
        if "self_attn" in name and layer in RECURRENT_LAYERS:
            continue
        if name.endswith("q_proj.weight"):
            weight = torch.cat([weight, _normal(random, *weight.shape)])  # the gate of the output
        weights[name] = weight
    for layer in range(TARGET_LAYERS):
        prefix = f"model.layers.{layer}."
        weights[prefix + "mlp.gate.weight"] = torch.zeros(1, HIDDEN)
        weights |= _recurrence(random, prefix + "linear_attn.") if layer in RECURRENT_LAYERS else _norms(prefix)
    return weights


def _recurrence(random: torch.Generator, prefix: str) -> Weights:
    return {
        prefix + "in_proj_qkvz.weight": _normal(random, 4 * STATE, HIDDEN),
        prefix + "in_proj_ba.weight": _normal(random, 2, HIDDEN),
        prefix + "conv1d.weight": _normal(random, 3 * STATE, 1, KERNEL, std=0.5),
        prefix + "A_log": torch.tensor([-2.0]),  # forgets so slowly that the state counts
        prefix + "dt_bias": torch.zeros(1),
        prefix + "norm.weight": torch.ones(STATE),
        prefix + "out_proj.weight": _normal(random, HIDDEN, STATE, std=0.5),
    }


def _norms(prefix: str) -> Weights:
    """Of queries and keys; zero is no change."""
    return {f"{prefix}self_attn.{name}_norm.weight": torch.zeros(64) for name in "qk"}


def _normal(random: torch.Generator, *shape: int, std: float = 0.2) -> torch.Tensor:
    return torch.randn(*shape, generator=random) * std
