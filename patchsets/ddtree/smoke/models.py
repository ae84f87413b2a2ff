"""Tiny models, as far as server arguments look at them, and command lines that SGLang itself resolves on them.

The device is always ``cuda``, which SGLang takes at its word: from 0.5.16 on it refuses DFLASH on a CPU when it reads
the arguments, and reading them needs no GPU.
"""

from __future__ import annotations

import argparse
import json
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

BLOCK_SIZE = 4
TARGET: dict[str, object] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "vocab_size": 512,
    "max_position_embeddings": 512,
    "torch_dtype": "float32",
}
DRAFT: dict[str, object] = {
    **TARGET,
    "architectures": ["DFlashDraftModel"],
    "model_type": "qwen3",
    "num_hidden_layers": 2,
    "num_target_layers": 4,
    "block_size": BLOCK_SIZE,
    "dflash_config": {"mask_token_id": 511, "target_layer_ids": [0, 2], "block_size": BLOCK_SIZE},
}
HYBRID: dict[str, object] = {
    **TARGET,
    "architectures": ["Qwen3NextForCausalLM"],
    "model_type": "qwen3_next",
    "full_attention_interval": 4,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "num_experts": 0,
}
# Its kernels know no trees.
LIGHTNING: dict[str, object] = {
    **TARGET,
    "architectures": ["BailingMoeV2_5ForCausalLM"],
    "model_type": "bailing_hybrid",
    "layer_group_size": 2,
}
MLA: dict[str, object] = {
    **TARGET,
    "architectures": ["DeepseekV2ForCausalLM"],
    "model_type": "deepseek_v2",
    "kv_lora_rank": 32,
    "q_lora_rank": None,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 32,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 4,
}


class Models:
    """Their folders, and what resolving a command line on them gives."""

    def __init__(self, folder: Path) -> None:
        self.target = _model(folder / "target", TARGET)
        self.draft = _model(folder / "draft", DRAFT)
        self.hybrid = _model(folder / "hybrid", HYBRID)
        self.lightning = _model(folder / "lightning", LIGHTNING)
        self.mla = _model(folder / "mla", MLA)

    def resolve(self, *flags: str, target: str = "") -> Any:
        """The fields that SGLang made of a command line with DDTREE."""
        return fields_of(self.record(*flags, target=target))

    def record(self, *flags: str, target: str = "") -> Any:
        """The same as the ServerArgs that processes are given, resolved."""
        from sglang.srt.server_args import ServerArgs

        argv = ["--model-path", target or self.target, "--device", "cuda", "--skip-tokenizer-init"]
        argv += ["--speculative-algorithm", "DDTREE", "--speculative-draft-model-path", self.draft, *flags]
        return resolved(ServerArgs.from_cli_args(_parser().parse_args(argv)))

    def in_python(self, **fields: object) -> Any:
        """As :meth:`record`, of arguments that no command line has read."""
        from sglang.srt.server_args import ServerArgs

        given = {
            "model_path": self.target,
            "device": "cuda",
            "skip_tokenizer_init": True,
            "speculative_algorithm": "DDTREE",
            "speculative_draft_model_path": self.draft,
            **fields,
        }
        return resolved(ServerArgs(**given))


def resolved(server_args: Any) -> Any:
    """Itself, resolved. Until 0.5.18 making it does that; later it is asked for once, by whoever starts a server."""
    if hasattr(server_args, "resolve_once"):
        server_args.resolve_once()
    return server_args


def fields_of(server_args: Any) -> Any:
    """Resolved values by field name. From 0.5.19 on the fields themselves keep what the user gave."""
    if hasattr(server_args, "resolved_dict"):
        return SimpleNamespace(**server_args.resolved_dict())
    return server_args


def options() -> frozenset[str]:
    """Every flag that this release has."""
    return frozenset(_parser()._option_string_actions)


def kv_cache_types() -> frozenset[str]:
    """What ``--kv-cache-dtype`` may be."""
    return frozenset(_parser()._option_string_actions["--kv-cache-dtype"].choices or ())


def overlaps() -> bool:
    """Whether this release's DFLASH worker runs under the overlap scheduler, in pages of any size.

    Asked of the files, as it must be known where SGLang cannot be imported too.
    """
    package = find_spec("sglang")
    folders = (package.submodule_search_locations or ()) if package else ()
    return any(Path(folder, "srt", "speculative", "dflash_worker_v2.py").is_file() for folder in folders)


def _parser() -> argparse.ArgumentParser:
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    return parser


def _model(folder: Path, config: dict[str, object]) -> str:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(folder)
