"""Tiny hybrid targets: the tiny Llama target of ``models`` with recurrent layers, drafted for by the same drafter.

``qwen3_next`` has a gated delta net in every second layer, as Qwen3-Next; ``nemotron_h`` has a layer of attention, one
of Mamba2 and a multi-layer perceptron, as Nemotron-H.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file  # type: ignore[import-not-found,unused-ignore]

from .models import HEAD_DIM, HIDDEN, INTERMEDIATE, TARGET_LAYERS, Checkpoints, TinyModels, Weights

QWEN3_NEXT, NEMOTRON_H = "qwen3_next", "nemotron_h"
MAMBA2 = "Mamba2"
STATE = 16  # dimensions of a key and of a value: the smallest that the prefill's matrix products take
KERNEL = 4  # positions that the short convolution sees
HEADS = 4  # of Mamba2
RECURRENT_LAYERS = tuple(layer for layer in range(TARGET_LAYERS) if layer % 2 == 0)


def write(folder: str | Path, kind: str = QWEN3_NEXT, **fields: Any) -> Checkpoints:
    """The target and its drafter as ``folder/target`` and ``folder/draft``; ``fields`` are those of ``TinyModels``."""
    checkpoints = TinyModels(**fields).write(folder)
    target = Path(checkpoints.target)
    config = json.loads((target / "config.json").read_text(encoding="utf-8"))
    llama = load_file(str(target / "model.safetensors"))
    weights = _delta_nets(llama) if kind == QWEN3_NEXT else _mamba(llama)
    more = _delta_net_config() if kind == QWEN3_NEXT else _mamba_config()
    (target / "config.json").write_text(json.dumps({**config, **more}), encoding="utf-8")
    save_file(weights, str(target / "model.safetensors"), metadata={"format": "pt"})
    return checkpoints


def serves_mamba2() -> bool:
    """Whether DFLASH, and so DDTREE, serves Nemotron-H in this release."""
    from sglang.srt.models.nemotron_h import NemotronHForCausalLM

    return hasattr(NemotronHForCausalLM, "set_dflash_layers_to_capture")


def _delta_net_config() -> dict[str, Any]:
    return {
        "architectures": ["Qwen3NextForCausalLM"],
        "model_type": QWEN3_NEXT,
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


def _delta_nets(llama: Weights) -> Weights:
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
    return {f"{prefix}self_attn.{name}_norm.weight": torch.zeros(HEAD_DIM) for name in "qk"}


def _mamba_config() -> dict[str, Any]:
    return {
        "architectures": ["NemotronHForCausalLM"],
        "model_type": NEMOTRON_H,
        "hybrid_override_pattern": "*M-",
        "layers_block_type": ["attention", "mamba", "mlp"],
        "num_hidden_layers": 3,
        "layer_norm_epsilon": 1e-6,
        "mlp_hidden_act": "relu2",
        "mamba_num_heads": HEADS,
        "mamba_head_dim": STATE,
        "mamba_n_groups": 1,
        "n_groups": 1,
        "ssm_state_size": STATE,
        "conv_kernel": KERNEL,
        "chunk_size": 16,
        "use_conv_bias": True,
        "use_bias": False,
        "pad_token_id": 0,
    }


def _mamba(llama: Weights) -> Weights:
    random = torch.Generator().manual_seed(7)
    inner, channels = HEADS * STATE, HEADS * STATE + 2 * STATE
    layers = "backbone.layers."
    weights: Weights = {
        "backbone.embeddings.weight": llama["model.embed_tokens.weight"],
        "backbone.norm_f.weight": llama["model.norm.weight"],
        "lm_head.weight": llama["lm_head.weight"],
        f"{layers}1.mixer.in_proj.weight": _normal(random, inner + channels + HEADS, HIDDEN),
        f"{layers}1.mixer.conv1d.weight": _normal(random, channels, 1, KERNEL, std=0.5),
        f"{layers}1.mixer.conv1d.bias": _normal(random, channels, std=0.1),
        f"{layers}1.mixer.A_log": torch.full((HEADS,), -2.0),
        f"{layers}1.mixer.dt_bias": _normal(random, HEADS, std=0.5),
        f"{layers}1.mixer.D": _normal(random, HEADS, std=0.5),
        f"{layers}1.mixer.norm.weight": torch.ones(inner),
        f"{layers}1.mixer.out_proj.weight": _normal(random, HIDDEN, inner),
    }
    for name in "qkvo":
        weights[f"{layers}0.mixer.{name}_proj.weight"] = llama[f"model.layers.0.self_attn.{name}_proj.weight"]
    for name in ("up", "down"):
        weights[f"{layers}2.mixer.{name}_proj.weight"] = llama[f"model.layers.0.mlp.{name}_proj.weight"]
    return weights | {f"{layers}{layer}.norm.weight": torch.ones(HIDDEN) for layer in range(3)}


def _normal(random: torch.Generator, *shape: int, std: float = 0.2) -> torch.Tensor:
    return torch.randn(*shape, generator=random) * std
