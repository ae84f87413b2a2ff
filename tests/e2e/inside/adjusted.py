"""Requests whose logits are changed before a token is chosen: a bias, a custom processor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sampling
import torch


def seeded(algorithm: str, requests: list[dict[str, Any]], flags: Sequence[str] = ()) -> list[dict[str, Any]]:
    """What ``sampling.seeded`` gives, where ``fields`` may name a processor: "exchange"."""
    from sglang.srt.sampling.custom_logit_processor import CustomLogitProcessor

    class Exchange(CustomLogitProcessor):
        """Exchanges the logits of tokens 0 and 1: done twice it would be undone."""

        def __call__(self, logits: torch.Tensor, custom_param_list: Any = None) -> torch.Tensor:
            order = [1, 0, *range(2, logits.shape[1])]
            return logits[:, order]

    texts = {"exchange": Exchange.to_str()}
    for request in requests:
        fields = request.get("fields", {})
        if "custom_logit_processor" in fields:
            fields["custom_logit_processor"] = texts[fields["custom_logit_processor"]]
    return sampling.seeded(algorithm, requests, ["--enable-custom-logit-processor", *flags])
