"""How a server of the tiny models is started here: on the GPU where there is one, else on the CPU."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from functools import cache

import torch

from . import shims
from .models import Checkpoints

NONE, DFLASH, DDTREE = "NONE", "DFLASH", "DDTREE"

_PRELOADED = ("sglang.srt.managers.scheduler", "sglang.srt.models.registry")  # the registry loads every model class
_ALWAYS = (
    *("--skip-tokenizer-init", "--log-level", "info", "--random-seed", "1"),
    *("--max-total-tokens", "1024", "--max-running-requests", "4", "--context-length", "256"),
    *("--chunked-prefill-size", "128", "--mem-fraction-static", "0.5", "--grammar-backend", "none"),
)
_ON_THE_CPU = (
    # The interpreter computes bfloat16 wrong, and its time goes by the number of programs a kernel is launched with.
    *("--device", "cpu", "--dtype", "float32", "--attention-backend", "triton"),
    *("--triton-attention-num-kv-splits", "1", "--sampling-backend", "pytorch", "--disable-cuda-graph"),
)
_ON_THE_GPU = ("--dtype", "float16")  # fewer near-ties than bfloat16, which could flip a greedy choice


def has_gpu() -> bool:
    return bool(torch.cuda.is_available())


@cache
def preload() -> None:
    """Loads SGLang as for a server, fit for the CPU, once for all forks, however often it is called.

    With a GPU each fork loads its own, as it is, as CUDA survives none.
    """
    if has_gpu():
        return
    os.environ["TRITON_INTERPRET"] = os.environ["SGLANG_USE_CPU_ENGINE"] = "1"  # read while they are imported
    torch.set_num_threads(1)  # before there are threads, which a fork would lose
    shims.lighten_the_interpreter()
    for name in _PRELOADED:
        importlib.import_module(name)
    shims.prepare_for_the_cpu()


def server_flags(models: Checkpoints, algorithm: str, more: Sequence[str] = ()) -> list[str]:
    """Flags for one of NONE, DFLASH and DDTREE; a flag in ``more`` overrides the same flag before it."""
    chosen: tuple[str, ...] = ()
    if algorithm != NONE:
        chosen = ("--speculative-algorithm", algorithm, "--speculative-draft-model-path", models.draft)
    place = _ON_THE_GPU if has_gpu() else _ON_THE_CPU
    return ["--model-path", models.target, *_ALWAYS, *place, *chosen, *more]
