"""What is changed for the tiny models to run in float32, and on a CPU; done to the loaded modules, never to a file."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any


def draft_in_its_own_dtype() -> None:
    """The drafter takes its input embeddings as they were computed, not rounded to bfloat16.

    SGLang's model runner rounds every input embedding to bfloat16, whatever the model's dtype is, and then float32
    weights refuse to be multiplied with it. The embeddings from before are still in the forward batch.
    """
    from sglang.srt.models.dflash import DFlashDraftModel

    upstream = DFlashDraftModel.forward

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
