"""Hybrid targets whose recurrent layers cannot follow a tree: refused with the reason, or warned of with the switch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from engine_server import EngineServer
from scripts import tree_flags

from sglang_releases import BEFORE_OVERLAP, OVERLAPPING, SUPPORTED

pytestmark = [pytest.mark.wheels, pytest.mark.engine, pytest.mark.slow]

SWITCH = "--speculative-ddtree-allow-hybrid-unsafe"
FLOAT32_STATES = {"SGLANG_MAMBA_CONV_DTYPE": "float32", "SGLANG_MAMBA_SSM_DTYPE": "float32"}
KIMI: dict[str, Any] = {
    "architectures": ["KimiLinearForCausalLM"],
    "model_type": "kimi_linear",
    "linear_attn_config": {
        "kda_layers": [1],
        "full_attn_layers": [2],
        "num_heads": 2,
        "head_dim": 32,
        "short_conv_kernel_size": 4,
    },
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 32,
}
LIGHTNING: dict[str, Any] = {
    "architectures": ["BailingMoeV2_5ForCausalLM"],
    "model_type": "bailing_hybrid",
    "layer_group_size": 2,
}
LFM2: dict[str, Any] = {
    "architectures": ["Lfm2ForCausalLM"],
    "model_type": "lfm2",
    "layer_types": ["conv", "full_attention", "conv"],
    "num_hidden_layers": 3,
    "conv_L_cache": 3,
}
OTHERS: dict[str, dict[str, Any]] = {
    "lfm2_moe": {**LFM2, "architectures": ["Lfm2MoeForCausalLM"], "model_type": "lfm2_moe"},
    "falcon_h1": {
        "architectures": ["FalconH1ForCausalLM"],
        "model_type": "falcon_h1",
        "mamba_d_ssm": 64,
        "mamba_n_heads": 4,
        "mamba_d_head": 16,
        "mamba_n_groups": 1,
        "mamba_d_state": 16,
    },
    "granite": {
        "architectures": ["GraniteMoeHybridForCausalLM"],
        "model_type": "granitemoehybrid",
        "layer_types": ["mamba", "attention"],
        "mamba_n_heads": 4,
        "mamba_d_head": 32,
        "num_hidden_layers": 2,
    },
    "jet_nemotron": {
        "architectures": ["JetNemotronForCausalLM"],
        "model_type": "jet_nemotron",
        "layer_types": ["jet", "attn"],
        "num_hidden_layers": 2,
    },
}
ZAYA: dict[str, Any] = {"architectures": ["ZayaForCausalLM"], "model_type": "zaya", "num_query_groups": 1}

Engines = Callable[..., EngineServer]


def refusals(engine: EngineServer, configs: dict[str, dict[str, Any]], *flags: str) -> dict[str, str]:
    value = engine.call("hybrid.refusals", FLOAT32_STATES, configs=configs, flags=list(flags))
    assert isinstance(value, dict)
    return value


@pytest.mark.shows("kda", refused=True)
@pytest.mark.shows("lightning", refused=True)
@pytest.mark.shows("short-convolution", refused=True)
@pytest.mark.parametrize("version", SUPPORTED)
def test_families_that_cannot_follow_a_tree_are_refused_with_the_reason(version: str, engines: Engines) -> None:
    configs = {"kda": KIMI, "lightning": LIGHTNING, "lfm2": LFM2, **OTHERS}
    if version in OVERLAPPING:
        configs["zaya"] = ZAYA
    found = refusals(engines(version), configs)
    for name, message in found.items():
        for words in ("DDTREE does not support hybrid targets", "--speculative-algorithm DFLASH", SWITCH):
            assert words in message, (name, message)
    assert "no kernel for a tree" in found["kda"]
    assert "its state is advanced in node order" in found["lightning"]
    assert "its own short convolution" in found["lfm2"]


@pytest.mark.parametrize("version", [BEFORE_OVERLAP[-1], OVERLAPPING[-1]])
def test_the_switch_lets_them_pass(version: str, engines: Engines) -> None:
    found = refusals(engines(version), {"lightning": LIGHTNING, "lfm2": LFM2}, SWITCH)
    assert not [message for message in found.values() if "does not support hybrid targets" in message], found


@pytest.mark.parametrize("version", [BEFORE_OVERLAP[-1], OVERLAPPING[-1]])
def test_an_unknown_family_is_refused_by_the_worker(version: str, engines: Engines) -> None:
    """Where a configuration did not tell the arguments what the target is."""
    engine = engines(version)
    flags = list(tree_flags(7, 4))
    found = engine.call("hybrid.started", FLOAT32_STATES, plant=["forget_the_family"], hidden=True, flags=flags)
    for words in ("hybrid targets", "which DDTREE does not know", "DFLASH", SWITCH):
        assert words in found["refused"], found
    allowed = engine.call(
        "hybrid.started", FLOAT32_STATES, plant=["forget_the_family"], hidden=True, flags=[*flags, SWITCH]
    )
    assert allowed["refused"] == ""
    warnings = [line for line in allowed["logs"] if line.startswith("WARNING DDTREE")]
    assert any(SWITCH in line and "Generated tokens differ" in line for line in warnings)
    assert any("self-check is left out" in line for line in warnings)
    assert not any("self-check passed" in line for line in allowed["logs"])
