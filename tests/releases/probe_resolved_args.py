"""How SGLang resolves command lines that do not name DDTREE: a program for ``bootstrap.py``.

One check a command line; its detail is a JSON object of every resolved field, sorted, or of the error that refused it.
Run it on a tree before and after patching: the details must be equal. What differs from run to run is left out: random
seeds and ports become a word, folders of this run become ``<models>``, and the machine always has the same memory.
DDTREE's own fields are dropped, as only a patched tree has them. The device is ``cuda`` where a line does not name it:
SGLang takes it at its word, and from 0.5.16 on refuses DFLASH on a CPU.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

_LLAMA: dict[str, object] = {
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
MODELS: dict[str, dict[str, object]] = {
    "target": _LLAMA,
    "eagle": {**_LLAMA, "architectures": ["LlamaForCausalLMEagle"], "num_hidden_layers": 1},
    "eagle3": {**_LLAMA, "architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1},
    "dflash": {
        **_LLAMA,
        "architectures": ["DFlashDraftModel"],
        "model_type": "qwen3",
        "num_hidden_layers": 2,
        "num_target_layers": 4,
        "block_size": 4,
        "dflash_config": {"mask_token_id": 511, "target_layer_ids": [0, 2], "block_size": 4},
    },
    "hybrid": {
        **_LLAMA,
        "architectures": ["Qwen3NextForCausalLM"],
        "model_type": "qwen3_next",
        "full_attention_interval": 4,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 2,
        "linear_key_head_dim": 32,
        "linear_value_head_dim": 32,
        "num_experts": 0,
    },
}
_DFLASH = "--speculative-algorithm DFLASH --speculative-draft-model-path {dflash}"
COMMAND_LINES = {
    "none": "",
    "none-with-spec-defaults": "--page-size 16 --enable-mixed-chunk --attention-backend triton",
    "eagle": "--speculative-algorithm EAGLE --speculative-draft-model-path {eagle} --speculative-num-steps 3 "
    "--speculative-eagle-topk 4 --speculative-num-draft-tokens 16 --attention-backend triton",
    "eagle-defaults": "--speculative-algorithm EAGLE --speculative-draft-model-path {eagle} --attention-backend triton",
    "eagle3": "--speculative-algorithm EAGLE3 --speculative-draft-model-path {eagle3} --attention-backend triton",
    "nextn": "--speculative-algorithm NEXTN --speculative-draft-model-path {eagle} --attention-backend triton",
    "standalone": "--speculative-algorithm STANDALONE --speculative-draft-model-path {target} "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
    "none-on-cpu": "--device cpu",
    "ngram": "--speculative-algorithm NGRAM --attention-backend triton --mem-fraction-static 0.5",
    "ngram-on-cpu": "--speculative-algorithm NGRAM --device cpu --attention-backend triton",
    "dflash": f"{_DFLASH} --attention-backend triton",
    "dflash-block-size": f"{_DFLASH} --speculative-dflash-block-size 8 --enable-mixed-chunk --page-size 16",
    "dflash-num-draft-tokens": f"{_DFLASH} --speculative-num-draft-tokens 17 --max-running-requests 7",
    "dflash-mismatch": f"{_DFLASH} --speculative-dflash-block-size 8 --speculative-num-draft-tokens 17",
    "dflash-pp": f"{_DFLASH} --pp-size 2",
    "dflash-dp-attention": f"{_DFLASH} --enable-dp-attention --tp-size 2 --dp-size 2",
    "dflash-window": f"{_DFLASH} --speculative-draft-window-size 16",
    "dflash-default-backend": _DFLASH,
    "dflash-on-cpu": f"{_DFLASH} --device cpu",
    "dflash-hybrid": f"{_DFLASH} --model-path {{hybrid}} --disable-radix-cache",
    "dflash-without-draft": "--speculative-algorithm DFLASH",
    "unknown": "--speculative-algorithm NO_SUCH_ALGORITHM",
    "third-party": "--speculative-algorithm ACME --attention-backend triton",
}
MEMORY = 24.0 * 1024  # MiB, whatever this machine has at the moment: defaults are computed from it
RANDOM_FIELDS = ("random_seed", "nccl_port", "dist_init_addr", "port")


def checks() -> Iterator[tuple[str, Callable[[], str]]]:
    yield "registered", _register
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: _write_model(Path(folder) / name, config) for name, config in MODELS.items()}
        for name, line in COMMAND_LINES.items():
            flags = [flag.format(**paths) for flag in line.split()]
            yield f"resolved:{name}", partial(_resolved, flags, folder)


def _register() -> str:
    """A third party's algorithm, where the release lets one be registered."""
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

    register = getattr(SpeculativeAlgorithm, "register", None)
    if register is None:
        return json.dumps({"registered": None})
    register("acme")(lambda server_args: object)
    return json.dumps({"registered": SpeculativeAlgorithm.from_string("ACME").name})


def _write_model(folder: Path, config: dict[str, object]) -> str:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(folder)


def _resolved(flags: list[str], folder: str) -> str:
    random.seed(0)
    try:
        found: dict[str, Any] = _fields(flags, folder)
    except (Exception, SystemExit) as error:  # a refusal must stay the same refusal
        found = {"refused": f"{type(error).__name__}: {error}"}
    return json.dumps(found, sort_keys=True, default=repr).replace(str(Path(folder)), "<models>")


def _fields(flags: list[str], folder: str) -> dict[str, Any]:
    from sglang.srt.server_args import ServerArgs

    _fix_memory()
    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    argv = ["--model-path", f"{folder}/target", "--device", "cuda", "--skip-tokenizer-init", *flags]
    found = _resolved_fields(ServerArgs.from_cli_args(parser.parse_args(argv)))
    found.update(dict.fromkeys(RANDOM_FIELDS, "<varies>"))
    return {name: value for name, value in found.items() if not name.startswith("speculative_ddtree_")}


def _resolved_fields(server_args: Any) -> dict[str, Any]:
    """From 0.5.19 on arguments are resolved when they are asked to be, and the fields keep what was given."""
    if hasattr(server_args, "resolve_once"):
        server_args.resolve_once()
        return dict(server_args.resolved_dict())
    return {field.name: getattr(server_args, field.name) for field in dataclasses.fields(server_args)}


def _fix_memory() -> None:
    """Wherever a module of this release has the function from ``utils``, and for those that will take it from there."""
    name = "get_device_memory_capacity"
    places = [module for key, module in sys.modules.items() if key.startswith("sglang.") and name in vars(module)]
    assert places, "no module of SGLang's asks for the memory"
    for module in places:
        setattr(module, name, lambda device=None: MEMORY)
