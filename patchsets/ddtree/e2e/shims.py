"""What the tiny models need changed in SGLang to run in float32; done to the loaded modules, never to a file."""

from __future__ import annotations

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
