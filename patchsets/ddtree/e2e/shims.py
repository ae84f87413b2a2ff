"""What is changed for the tiny models to run in float32, and on a CPU; done to the loaded modules, never to a file.

Each shim looks for what it changes: where a release has no such thing, it leaves it as it is.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
from typing import Any

import torch

_DEVICE_CHECK = '.device.startswith("cuda")'


def prepare_for_the_cpu() -> None:
    """After SGLang's modules were loaded, and before arguments are resolved."""
    _admit_the_device()
    _let_the_cpu_find_slots()
    _need_no_streams()
    _draft_in_its_own_dtype()


def _admit_the_device() -> None:
    """DFLASH's own argument checks take the CPU for a device that it can run on, as 0.5.11 to 0.5.15.post1 do.

    From 0.5.16 on they refuse every device whose kernels nobody has tuned; what they would run is there.
    """
    try:
        hook = importlib.import_module("sglang.srt.arg_groups.speculative_hook")
    except ModuleNotFoundError:
        return  # the arguments check themselves, and no device
    source = inspect.getsource(hook._handle_dflash)
    if _DEVICE_CHECK in source:
        source = source.replace(_DEVICE_CHECK, '.device.startswith(("cuda", "cpu"))')
        code = compile("from __future__ import annotations\n" + source, f"{hook.__file__} on the CPU", "exec")
        exec(code, vars(hook))


def _let_the_cpu_find_slots() -> None:
    """Verify slots are read from the request table as on a GPU; 0.5.14 to 0.5.15.post1 read none for a CPU."""
    try:
        cache_locs: Any = importlib.import_module("sglang.srt.speculative.triton_ops.cache_locs")
    except ModuleNotFoundError:
        return
    if hasattr(cache_locs, "_is_cuda"):
        cache_locs._is_cuda = True


def _need_no_streams() -> None:
    """A tensor needs no record of the streams that use it: there is one, and PyTorch refuses to record the CPU's."""

    def record_stream(self: torch.Tensor, stream: object) -> None:
        return

    torch.Tensor.record_stream = record_stream


def _draft_in_its_own_dtype() -> None:
    """The drafter takes its input embeddings as they were computed, not rounded to bfloat16.

    SGLang's model runner rounds every input embedding to bfloat16, whatever the model's dtype is, and then float32
    weights refuse to be multiplied with it. The embeddings from before are still in the forward batch.
    """
    from sglang.srt.models.dflash import DFlashDraftModel

    upstream = DFlashDraftModel.forward

    @functools.wraps(upstream)  # graph runners look at its parameters
    def forward(self: Any, input_ids: Any, positions: Any, forward_batch: Any, *args: Any, **kwargs: Any) -> Any:
        embeddings = forward_batch.input_embeds
        if embeddings is not None and self.fc.weight.dtype == embeddings.dtype:
            kwargs["input_embeds"], args = embeddings, args[1:]
        return upstream(self, input_ids, positions, forward_batch, *args, **kwargs)

    DFlashDraftModel.forward = forward


def lighten_the_interpreter() -> None:
    """Triton's interpreter does without what takes it half of its time and changes no result.

    That is a check of every integer operation for overflow, which no GPU makes either, and a search through the
    language at every call of a function for what has to be replaced in it, which is always the same. A version of
    Triton that has no such thing stays as it is.
    """
    from triton.language import core
    from triton.runtime import interpreter

    builder: Any = getattr(interpreter, "interpreter_builder", None)
    if hasattr(getattr(builder, "options", None), "sanitize_overflow"):
        builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)
    if hasattr(interpreter, "_patch_builtin") and hasattr(interpreter, "_patch_attr"):
        _remember_builtins(interpreter, core.is_builtin)


def _remember_builtins(interpreter: Any, is_builtin: Any) -> None:
    """Each package is searched at its first call, when nothing in it is replaced: what is replaced is no builtin."""
    names: dict[Any, list[str]] = {}

    def patch_builtin(package: Any, *arguments: Any) -> None:
        if package not in names:
            names[package] = [name for name, member in inspect.getmembers(package) if is_builtin(member)]
        for name in names[package]:
            member = getattr(package, name)
            if is_builtin(member):
                interpreter._patch_attr(package, name, member, *arguments)

    interpreter._patch_builtin = patch_builtin
