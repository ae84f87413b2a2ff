"""Numbers about the trees, logged as often as the release logs its decode batches."""

from __future__ import annotations

import logging
from typing import Any

import torch
from sglang.srt.speculative.ddtree_tree import DraftTree, Path

logger = logging.getLogger(__name__)

_COUNTED = ("requests", "nodes", "depth", "accepted", "left_chain")


class TreeStatistics:
    """Sums over the verify steps since the last report, kept on the device: counting and logging never wait for it.

    A report is copied to the host while the next steps run, and logged in the first step that finds it there.
    """

    def __init__(self, interval: int, device: torch.device | str) -> None:
        self.interval = max(1, interval)
        self.steps = 0
        self.sums = torch.zeros(len(_COUNTED), dtype=torch.int64, device=device)
        self.reports = True
        self._on_its_way: tuple[int, torch.Tensor, Any] | None = None  # steps, sums on the host, when they are there

    def count(self, tree: DraftTree, path: Path) -> None:
        """One verify step; every `interval` steps the means are logged."""
        self.steps += 1
        self.sums += torch.stack(
            [
                torch.full_like(self.sums[0], tree.tokens.shape[0]),
                tree.is_node.sum() - tree.tokens.shape[0],
                tree.depths.amax(dim=1).sum(),
                path.lengths.sum() - tree.tokens.shape[0],
                path.left_chain.sum(),
            ]
        )
        if self.steps == self.interval:
            if self.reports:
                self._on_its_way = (self.steps, *_to_host(self.sums))
            self.steps = 0
            self.sums = torch.zeros_like(self.sums)
        self._log_what_arrived()

    def _log_what_arrived(self) -> None:
        if self._on_its_way is None:
            return
        steps, sums, arrived = self._on_its_way
        if arrived is None or arrived.query():
            self._on_its_way = None
            logger.info("%s", summary(steps, sums))


def summary(steps: int, counted: torch.Tensor) -> str:
    """The means a request and step, in one line; `counted` are sums on the host."""
    sums = dict(zip(_COUNTED, counted.tolist(), strict=True))
    requests = max(1, sums["requests"])
    return (
        f"DDTREE: {steps} verify steps of {sums['requests'] / max(1, steps):.1f} requests. Means: "
        f"tree size {sums['nodes'] / requests:.1f} nodes, tree depth {sums['depth'] / requests:.2f}, "
        f"accepted draft tokens {sums['accepted'] / requests:.2f}, "
        f"sibling-hit share {sums['left_chain'] / requests:.2f}"
    )


def _to_host(values: torch.Tensor) -> tuple[torch.Tensor, Any]:
    """A copy that is being made, and the event after which it is there; None where it is there at once."""
    if values.device.type == "cpu":
        return values.clone(), None
    copied = values.to("cpu", non_blocking=True)
    arrived = torch.get_device_module(values.device).Event()
    arrived.record()
    return copied, arrived
