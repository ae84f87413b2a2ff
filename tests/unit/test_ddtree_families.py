"""Which recurrent layers a target has, and whether a tree is exact for them, on plain objects."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from ddtree_stand_ins import Config, RecurrentConfig, Release

from ddtree_runtime import load_args

ddtree_args, _ = load_args()
SWITCH = "--speculative-ddtree-allow-hybrid-unsafe"
SIBLINGS = "sees the tokens of its siblings"
REFUSED = {
    "BailingHybridConfig": ("lightning", SIBLINGS),
    "MiniCPMHybridConfig": ("lightning", SIBLINGS),
    "KimiLinearConfig": ("Kimi delta attention", "no kernel for a tree"),
    "FalconH1Config": ("Falcon-H1", "no convolution kernel that reads a tree"),
    "Lfm2Config": ("LFM2", SIBLINGS),
    "Lfm2MoeConfig": ("LFM2", SIBLINGS),
    "Lfm2VlConfig": ("LFM2", SIBLINGS),
    "ZayaConfig": ("Zaya", SIBLINGS),
    "InklingModelConfig": ("Inkling", SIBLINGS),
    "JetNemotronConfig": ("Jet-Nemotron", SIBLINGS),
    "JetVLMConfig": ("Jet-VLM", SIBLINGS),
    "GraniteMoeHybridConfig": ("Granite", "no release serves it with DFLASH"),
    "BrandNewConfig": ("BrandNewConfig, which DDTREE does not know", "no test has shown"),
}
EXACT = {"Qwen3NextConfig": "gated delta net", "Qwen3_5Config": "gated delta net", "NemotronHConfig": "Mamba2"}


@pytest.fixture(autouse=True)
def sglang(monkeypatch: pytest.MonkeyPatch) -> Release:
    return Release(monkeypatch)


def config_of(name: str, **values: Any) -> Any:
    return type(name, (RecurrentConfig,), {})(**values)


def recurrence_of(hf_config: Any) -> Any:
    return ddtree_args.recurrence_of(SimpleNamespace(hf_config=hf_config))


@pytest.mark.parametrize("name", REFUSED)
def test_a_family_that_cannot_follow_a_tree_is_refused_with_the_reason(name: str) -> None:
    family, reason = REFUSED[name]
    found = recurrence_of(config_of(name))
    assert not found.is_exact
    for words in (family, reason, "--speculative-algorithm DFLASH", SWITCH):
        assert words in found.refusal
    for words in (family, reason, "Generated tokens differ", SWITCH):
        assert words in found.warning


@pytest.mark.parametrize("name", EXACT)
def test_a_family_that_can_is_known(name: str) -> None:
    found = recurrence_of(config_of(name))
    assert found.is_exact and found.family == EXACT[name]


def test_a_family_is_inherited() -> None:
    base = type("Qwen3NextConfig", (RecurrentConfig,), {})
    assert recurrence_of(type("Qwen3_5MoeTextConfig", (base,), {})()).is_exact


@pytest.mark.parametrize("place", ["text_config", "llm_config"])
def test_the_language_model_inside_counts(place: str) -> None:
    assert recurrence_of(Config(**{place: config_of("NemotronHConfig")})).family == "Mamba2"


@pytest.mark.parametrize("values", [{"use_kda": True}, {"model_type": "glm5_next"}])
def test_kda_under_another_name(values: dict[str, Any]) -> None:
    assert recurrence_of(config_of("BailingHybridConfig", **values)).family == "Kimi delta attention"


@pytest.mark.parametrize("layers", [{"linear_layer_ids": [0, 1]}, {"mamba_layer_ids": [2]}])
def test_recurrent_layers_by_their_numbers(layers: dict[str, Any]) -> None:
    assert recurrence_of(RecurrentConfig(**layers)) is not None


@pytest.mark.parametrize(
    "config", [Config(), Config(text_config=None), RecurrentConfig(linear_layer_ids=[]), SimpleNamespace()]
)
def test_no_recurrent_layer_is_no_hybrid(config: Any) -> None:
    assert recurrence_of(config) is None


def test_a_registered_plug_in_model_is_refused(sglang: Release) -> None:
    sglang.registered = ("spec", "config")
    assert "plug-in" in recurrence_of(Config()).refusal


def test_a_release_without_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sglang.srt.configs.linear_attn_model_registry", None)
    assert recurrence_of(Config()) is None


@pytest.mark.parametrize("found", [None, Config()])
def test_a_release_that_knows_its_hybrids(sglang: Release, found: object) -> None:
    """From 0.5.16 on, the plug-ins' among them."""
    sglang.add("sglang.srt.configs.hybrid_arch", mambaish_config=lambda model_config: found)
    assert (recurrence_of(Config()) is None) is (found is None)


def test_sparse_attention_beside_it_is_refused(sglang: Release) -> None:
    """From 0.5.23 on its full attention layers may have a backend that takes no mask."""
    sglang.add("sglang.srt.layers.attention.qsa.config", is_qwen_qsa=lambda config: True)
    assert "sparse attention" in recurrence_of(config_of("Qwen3NextConfig")).refusal
