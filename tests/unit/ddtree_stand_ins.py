"""Stand-ins for what DDTREE's argument modules look at: arguments, a target's configuration, a release of SGLang's."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from ddtree_runtime import SPECULATIVE, package


class Config:
    """A Hugging Face configuration: attributes, and a text configuration that is itself unless given."""

    def __init__(self, **values: Any) -> None:
        self.architectures = ["LlamaForCausalLM"]
        self.__dict__.update(values)

    def get_text_config(self) -> Any:
        return self.__dict__.get("text_config", self)


class RecurrentConfig(Config):
    @property
    def mamba2_cache_params(self) -> Any:
        raise AssertionError("attention tensor-parallel group is not initialized")


class Args(SimpleNamespace):
    """What ServerArgs offers, as far as DDTREE looks at it."""

    def get_model_config(self) -> Any:
        return SimpleNamespace(
            hf_config=self.hf_config,
            has_attention_sinks=self.sinks,
            vocab_size=512,
            context_len=256,
            attention_arch=SimpleNamespace(name="MLA" if self.mla else "MHA"),
        )

    def enable_mamba_extra_buffer(self) -> bool:
        return bool(self.extra_buffer)


def arguments(**changes: Any) -> Args:
    defaults: dict[str, Any] = {
        "speculative_algorithm": "DDTREE",
        "speculative_ddtree_budget": 16,
        "speculative_ddtree_topk": 8,
        "speculative_ddtree_allow_hybrid_unsafe": False,
        "speculative_dflash_block_size": None,
        "speculative_num_draft_tokens": None,
        "speculative_attention_mode": "prefill",
        "attention_backend": None,
        "prefill_attention_backend": None,
        "decode_attention_backend": None,
        "enable_dp_attention": False,
        "pp_size": 1,
        "page_size": None,
        "enable_mixed_chunk": False,
        "kv_cache_dtype": "auto",
        "mamba_track_interval": 256,
        "hf_config": Config(),
        "sinks": False,
        "mla": False,
        "extra_buffer": False,
    }
    return Args(**{**defaults, **changes})


def checked(**changes: Any) -> Args:
    """Arguments as they are when DFLASH's checks begin."""
    return arguments(**{"attention_backend": "triton", "page_size": 1, **changes})


class Release:
    """What is there of SGLang: flashinfer, no plug-in, the worker of 0.5.11 to 0.5.13.post1, and what a test adds."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self.flashinfer = True
        self.registered: object = None
        for name in ("sglang", "sglang.srt", "sglang.srt.configs", "sglang.srt.utils", SPECULATIVE):
            patch.setitem(sys.modules, name, package(name))
        self.add("sglang.srt.utils.common", is_flashinfer_available=lambda: self.flashinfer)
        self.add("sglang.srt.configs.linear_attn_model_registry", get_linear_attn_config=lambda config: self.registered)
        self._worker = self.add(f"{SPECULATIVE}.dflash_worker")

    def add(self, name: str, **members: object) -> ModuleType:
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        module.__dict__.update(members)
        self._patch.setitem(sys.modules, name, module)
        return module

    def move_kv_cache(self) -> None:
        """From 0.5.14 on the worker is another one."""
        self._patch.delitem(sys.modules, self._worker.__name__)

    def declare(self) -> None:
        """From 0.5.19 on decisions are declared, and read through a view."""
        self.move_kv_cache()
        self._patch.setitem(sys.modules, "sglang.srt.arg_groups", package("sglang.srt.arg_groups"))
        overrides = self.add(
            "sglang.srt.arg_groups.overrides",
            resolving_view=View,
            declare_resolution=lambda args, source, **fields: args.declared.append((source, fields)),
            model_config_of=lambda args: Args.get_model_config(args),
            mamba_extra_buffer_of=lambda view: view.extra_buffer,
        )
        self._patch.setattr(sys.modules["sglang.srt.arg_groups"], "overrides", overrides, raising=False)


class View:
    """What was declared, over what was given."""

    def __init__(self, args: Any) -> None:
        self._args = args

    def __getattr__(self, name: str) -> Any:
        for _, fields in reversed(self._args.declared):
            if name in fields:
                return fields[name]
        return getattr(self._args, name)
