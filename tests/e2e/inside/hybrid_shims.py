"""What SGLang's Triton kernels for recurrent layers need to run in the interpreter, in float32, on the CPU.

Done to the loaded modules of a fork, before its engine starts; no file is touched. On the CPU SGLang would take kernels
of a GPU-only package instead; those that a GPU takes are the ones that matter.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any

import torch

LINEAR = "sglang.srt.layers.attention.linear"
FLA = "sglang.srt.layers.attention.fla"
SCATTER = "sglang.srt.layers.attention.mamba.mamba_state_scatter_triton"


def apply() -> None:
    _first_configuration()
    _masks_of_booleans()
    _portable_kernels()
    _late_functions()
    rewrite(f"{FLA}.chunk", "chunk_gated_delta_rule", "q.dtype != torch.float32", "True")  # bfloat16 for speed alone
    rewrite(SCATTER, "fused_mamba_state_scatter_with_mask", ".is_cuda", ".is_cpu")  # refuses what it could do
    _speculative_states_on_the_cpu()
    # Its guards enter the device of their inputs, which a CPU does not offer.
    if not hasattr(torch.cpu, "device"):
        torch.cpu.device = lambda index=None: contextlib.nullcontext()  # type: ignore[attr-defined]


def _first_configuration() -> None:
    """Autotuning measures on a GPU: every kernel takes the first configuration that it names."""
    from triton.runtime.autotuner import Autotuner

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.fn.run(*args, **kwargs, **self.configs[0].all_kwargs())

    Autotuner.run = run


def _masks_of_booleans() -> None:
    """A mask that was computed from two masks is one of integers in the interpreter, which then refuses it."""
    import numpy
    import triton.language as tl
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    def boolean(mask: Any) -> Any:
        if isinstance(mask, numpy.ndarray):  # of a block pointer
            return TensorHandle(mask.astype(numpy.bool_), tl.int1)
        if mask is None or mask.data.dtype == numpy.bool_:
            return mask
        return TensorHandle(mask.data.astype(numpy.bool_), mask.dtype)

    load, store = InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store
    InterpreterBuilder.create_masked_load = lambda self, ptrs, mask, *args: load(self, ptrs, boolean(mask), *args)
    InterpreterBuilder.create_masked_store = lambda self, ptrs, value, mask, *args: store(
        self, ptrs, value, boolean(mask), *args
    )


def _portable_kernels() -> None:
    """The backends bind Triton kernels where they are told, while they are imported, that this is no CPU."""
    from sglang.srt import utils
    from sglang.srt.models import qwen3_next
    from sglang.srt.utils import common

    saved, before = common.is_cpu, set(sys.modules)
    utils.is_cpu = common.is_cpu = lambda: False
    try:
        for name in (f"{LINEAR}.kernels.gdn_triton", f"{LINEAR}.gdn_backend"):
            importlib.import_module(name)
    finally:
        utils.is_cpu = common.is_cpu = saved
    for name in set(sys.modules) - before:
        if name.startswith("sglang.") and not name.startswith(LINEAR) and hasattr(sys.modules[name], "is_cpu"):
            sys.modules[name].is_cpu = saved
    qwen3_next._is_cpu = False


def _late_functions() -> None:
    """The interpreter replaces functions in ``triton.language``: under other names kernels find the compiler's."""
    import triton.language as tl

    names = {id(getattr(tl, name)): name for name in ("exp", "exp2", "log", "log2", "gather", "make_tensor_descriptor")}

    def late(name: str) -> Callable[..., Any]:
        return lambda *args, **kwargs: getattr(tl, name)(*args, **kwargs)

    for module in [module for name, module in sys.modules.items() if name.startswith("sglang.")]:
        for attribute, value in list(vars(module).items()):
            if id(value) in names and callable(value):
                setattr(module, attribute, late(names[id(value)]))


def rewrite(module_name: str, function: str, old: str, new: str) -> None:
    """Executes a function's source anew with one expression changed, for everyone who has imported it."""
    module = importlib.import_module(module_name)
    upstream = getattr(module, function)
    source = inspect.getsource(inspect.unwrap(upstream))
    if old not in source:
        raise AttributeError(f"{module_name}.{function} does not say {old!r}: this release needs another shim, or none")
    exec(compile("from __future__ import annotations\n" + source.replace(old, new), module_name, "exec"), vars(module))
    for holder in [holder for name, holder in sys.modules.items() if name.startswith("sglang.")]:
        if getattr(holder, function, None) is upstream:
            setattr(holder, function, getattr(module, function))


def _speculative_states_on_the_cpu() -> None:
    """The pool names "cuda" for the two buffers that verification fills, whatever device it is on."""
    from sglang.srt.mem_cache.memory_pool import MambaPool

    upstream, zeros = MambaPool.__init__, torch.zeros

    def zeros_here(*args: Any, **kwargs: Any) -> torch.Tensor:
        return zeros(*args, **{**kwargs, "device": "cpu"})

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        torch.zeros = zeros_here
        try:
            upstream(self, *args, **kwargs)
        finally:
            torch.zeros = zeros

    MambaPool.__init__ = init
