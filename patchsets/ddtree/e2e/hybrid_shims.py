"""What SGLang's Triton kernels for recurrent layers need to run in the interpreter, in float32, on the CPU.

Done to the loaded modules of a fork, before its engine starts; no file is touched. On the CPU SGLang would take kernels
of a GPU-only package instead; those that a GPU takes are the ones that matter. Each shim looks for what it changes:
where a release has no such thing, it leaves it as it is.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch

# Their default, bfloat16, is not computed right where the kernels are interpreted.
FLOAT32_STATES = {"SGLANG_MAMBA_CONV_DTYPE": "float32", "SGLANG_MAMBA_SSM_DTYPE": "float32"}

_LINEAR = "sglang.srt.layers.attention.linear"
_MAMBA = "sglang.srt.layers.attention.mamba"
_KERNELS = "sglang.kernels.ops"  # where later releases keep what was beside the backends
_CHUNK = (
    "sglang.srt.layers.attention.fla.chunk",
    f"{_KERNELS}.attention.fla.chunk",
    f"{_KERNELS}.attention.linear.chunk",
)
_SCATTER = tuple(f"{place}.mamba_state_scatter_triton" for place in (_MAMBA, f"{_KERNELS}.mamba"))
_CONVOLUTION = tuple(f"{place}.causal_conv1d_triton" for place in (_MAMBA, f"{_KERNELS}.mamba"))


def apply() -> None:
    _first_configuration()
    _masks_of_booleans()
    _portable_kernels()
    _convolution_of_mixers()
    _late_functions()
    for module in _found(_CHUNK):
        rewrite(module, "q.dtype != torch.float32", "True")  # bfloat16 for speed alone
    for module in _found(_SCATTER):
        rewrite(module, ".is_cuda", ".is_cpu")  # refuses what it could do
    _speculative_states_on_the_cpu()
    # Its guards enter the device of their inputs, which a CPU does not offer.
    if not hasattr(torch.cpu, "device"):
        torch.cpu.device = lambda index=None: contextlib.nullcontext()  # type: ignore[attr-defined,unused-ignore]


def overlapping_windows() -> None:
    """The pool chooses the layout of a GPU, whose convolution windows overlap where it may."""
    from sglang.srt.mem_cache import memory_pool

    if hasattr(memory_pool, "conv_window_dedup_enabled"):
        memory_pool._is_cpu = False


def _found(names: tuple[str, ...]) -> Iterator[ModuleType]:
    for name in names:
        with contextlib.suppress(ModuleNotFoundError):
            yield importlib.import_module(name)


def _first_configuration() -> None:
    """Autotuning measures on a GPU: every kernel takes the first configuration that it names."""
    from triton.runtime.autotuner import Autotuner

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.fn.run(*args, **kwargs, **self.configs[0].all_kwargs())

    Autotuner.run = run


def _masks_of_booleans() -> None:
    """A mask that was computed from two masks is one of integers in the interpreter, which then refuses it."""
    import numpy  # type: ignore[import-not-found,unused-ignore]
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
    backends = ("kernels.gdn_triton", "gdn_backend", "kernels.kda_triton", "kda_backend", "lightning_backend")
    try:
        for _ in _found(tuple(f"{_LINEAR}.{name}" for name in backends)):
            pass
    finally:
        utils.is_cpu = common.is_cpu = saved
    for name in set(sys.modules) - before:
        if name.startswith("sglang.") and not name.startswith(_LINEAR) and hasattr(sys.modules[name], "is_cpu"):
            vars(sys.modules[name])["is_cpu"] = saved
    qwen3_next._is_cpu = False


def _convolution_of_mixers() -> None:
    """Mamba2's mixer binds its convolutions for GPUs alone: the portable ones are those that it may choose there."""
    mixer = importlib.import_module(f"{_MAMBA}.mamba")
    for module in _found(_CONVOLUTION):
        for name in ("causal_conv1d_fn", "causal_conv1d_update"):
            for bound in (name, f"{name}_triton"):
                if not hasattr(mixer, bound):
                    setattr(mixer, bound, getattr(module, name))


def _late_functions() -> None:
    """The interpreter replaces functions in ``triton.language``: under other names kernels find the compiler's."""
    import triton.language as tl

    wanted = ("exp", "exp2", "log", "log2", "gather", "sqrt", "rsqrt", "sigmoid", "abs", "make_tensor_descriptor")
    names = {id(getattr(tl, name)): name for name in wanted}

    def late(name: str) -> Callable[..., Any]:
        return lambda *args, **kwargs: getattr(tl, name)(*args, **kwargs)

    for module in _loaded():
        for attribute, value in list(vars(module).items()):
            if id(value) in names and callable(value):
                setattr(module, attribute, late(names[id(value)]))


def rewrite(module: ModuleType, old: str, new: str) -> None:
    """Executes the functions of a module that say ``old`` anew, for everyone who has imported them."""
    for name, upstream in list(vars(module).items()):
        if not inspect.isfunction(upstream) or upstream.__module__ != module.__name__:
            continue
        source = inspect.getsource(inspect.unwrap(upstream))
        if old not in source:
            continue
        code = "from __future__ import annotations\n" + source.replace(old, new)
        exec(compile(code, module.__name__, "exec"), vars(module))
        for holder in _loaded():
            if vars(holder).get(name) is upstream:
                setattr(holder, name, getattr(module, name))


def _loaded() -> list[ModuleType]:
    return [module for name, module in list(sys.modules.items()) if name.startswith("sglang.")]


def _speculative_states_on_the_cpu() -> None:
    """To 0.5.14 the pool names "cuda" for the two buffers that verification fills, whatever device it is on."""
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
