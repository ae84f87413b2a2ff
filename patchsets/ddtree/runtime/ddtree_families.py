"""Which recurrent layers a target has, and whether a draft tree is exact for them.

A recurrent layer (Mamba, gated delta net, linear attention, short convolution) keeps one state for each request and
advances it token by token. In a tree a node has to begin with the state of its parent, and what is kept afterwards is
the state of the last accepted node. Some of SGLang's kernels can do that; the others advance one state through all
nodes in the order in which they lie, so that a branch sees the tokens of its siblings, and nothing fails.

A family is known by the name of its configuration's class, or of a class that it inherits from. One that is not here
is refused: nobody has looked at what its kernels do.

Nothing heavy is imported here: server arguments are read by processes that never load torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SWITCH = "--speculative-ddtree-allow-hybrid-unsafe"


@dataclass(frozen=True, slots=True)
class Recurrence:
    """The recurrent layers of a target."""

    family: str
    fault: str = ""  # why a tree is not exact for them; empty where it is

    @property
    def is_exact(self) -> bool:
        return not self.fault

    @property
    def refusal(self) -> str:
        """Why the target is refused, and what to do instead."""
        return (
            f"DDTREE does not support hybrid targets with recurrent layers of this family ({self.family}): "
            f"{self.fault}. Use --speculative-algorithm DFLASH, or accept wrong output with {SWITCH}."
        )

    @property
    def warning(self) -> str:
        """What the switch lets pass."""
        return (
            f"DDTREE: {SWITCH} is set and the target has recurrent layers of a family that is not exact "
            f"({self.family}): {self.fault}. Generated tokens differ from those of the target model alone."
        )


_NODE_ORDER = "its state is advanced in node order, so a branch of the tree sees the tokens of its siblings"
_OWN_CONVOLUTION = (
    "its own short convolution reads no links of the tree, so a branch of the tree sees the tokens of its siblings"
)
_UNTRIED = "no test has shown that its kernels keep the branches of a tree apart"
_DELTA_NET = Recurrence("gated delta net")
_MAMBA2 = Recurrence("Mamba2")
_LIGHTNING = Recurrence("lightning attention", _NODE_ORDER)
_KDA = Recurrence(
    "Kimi delta attention",
    "until 0.5.15.post1 it has no kernel for a tree, and no test has shown that those of later releases are exact",
)
_THIRD_PARTY = Recurrence("a plug-in's linear attention", _UNTRIED)
_SPARSE = Recurrence("gated delta net beside sparse attention", "its sparse attention takes no tree mask")

_FAMILIES = {
    "Qwen3NextConfig": _DELTA_NET,  # Qwen3.5 and 3.6 inherit their language model's configuration from it
    "Qwen3_5Config": _DELTA_NET,
    "NemotronHConfig": _MAMBA2,
    "NemotronH_Nano_VL_V2_Config": _MAMBA2,
    "GraniteMoeHybridConfig": Recurrence("Mamba2 of Granite", "no release serves it with DFLASH"),
    "JetNemotronConfig": Recurrence("gated delta net of Jet-Nemotron", _OWN_CONVOLUTION),
    "JetVLMConfig": Recurrence("gated delta net of Jet-VLM", _OWN_CONVOLUTION),
    "FalconH1Config": Recurrence("Mamba2 of Falcon-H1", "its mixer has no convolution kernel that reads a tree"),
    "Lfm2Config": Recurrence("short convolution of LFM2", _OWN_CONVOLUTION),
    "Lfm2MoeConfig": Recurrence("short convolution of LFM2", _OWN_CONVOLUTION),
    "Lfm2VlConfig": Recurrence("short convolution of LFM2", _OWN_CONVOLUTION),
    "ZayaConfig": Recurrence("short convolution of Zaya", _OWN_CONVOLUTION),
    "InklingModelConfig": Recurrence("short convolution of Inkling", _OWN_CONVOLUTION),
    "InklingMMConfig": Recurrence("short convolution of Inkling", _OWN_CONVOLUTION),
    "KimiLinearConfig": _KDA,
    "BailingHybridConfig": _LIGHTNING,
    "MiniCPMHybridConfig": _LIGHTNING,
}


def recurrence_of(model_config: Any) -> Recurrence | None:
    """What is known of the target's recurrent layers; None where it has none."""
    config = recurrent_config(model_config)
    if config is None:
        return None
    if getattr(config, "model_type", None) == "glm5_next" or getattr(config, "use_kda", False):
        return _KDA
    for cls in type(config).__mro__:
        if (found := _FAMILIES.get(cls.__name__)) is not None:
            return _SPARSE if found is _DELTA_NET and _is_sparse(model_config.hf_config) else found
    if _is_registered_linear(model_config.hf_config):
        return _THIRD_PARTY
    return Recurrence(f"{type(config).__name__}, which DDTREE does not know", _UNTRIED)


def recurrent_config(model_config: Any) -> Any:
    """The configuration that describes the recurrent layers, as SGLang itself finds it; None without such layers."""
    for config in _nested_configs(model_config.hf_config):
        if _has_recurrent_state(config):
            return config
    try:
        from sglang.srt.configs.hybrid_arch import mambaish_config
    except ImportError:
        return model_config.hf_config if _is_registered_linear(model_config.hf_config) else None
    return mambaish_config(model_config)


def _nested_configs(hf_config: Any) -> list[Any]:
    """The configuration itself and those of the language model inside it."""
    get_text_config = getattr(hf_config, "get_text_config", None)
    text_config = get_text_config() if get_text_config is not None else None
    inner = [getattr(hf_config, name, None) for name in ("text_config", "llm_config")]
    return [config for config in (hf_config, text_config, *inner) if config is not None]


def _has_recurrent_state(config: Any) -> bool:
    # Asked of the class, as the property itself needs an initialised process group.
    if getattr(type(config), "mamba2_cache_params", None) is None:
        return False
    for name in ("linear_layer_ids", "mamba_layer_ids"):
        layers = getattr(config, name, None)
        if layers is not None:
            return len(layers) > 0
    return True


def _is_registered_linear(hf_config: Any) -> bool:
    """Whether a plug-in has registered the target as a linear-attention model."""
    try:
        from sglang.srt.configs.linear_attn_model_registry import get_linear_attn_config
    except ImportError:
        return False
    return get_linear_attn_config(hf_config) is not None


def _is_sparse(hf_config: Any) -> bool:
    """From 0.5.23 on: full attention layers that look at chosen blocks, on a backend of their own."""
    try:
        from sglang.srt.layers.attention.qsa.config import is_qwen_qsa
    except ImportError:
        return False
    return bool(is_qwen_qsa(hf_config))
