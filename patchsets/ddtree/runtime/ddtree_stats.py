"""Numbers about the trees, logged as often as the release logs its decode batches."""

from __future__ import annotations

import logging

import torch
from sglang.srt.speculative.ddtree_tree import DraftTree, Path

logger = logging.getLogger(__name__)

_COUNTED = ("requests", "nodes", "depth", "accepted", "left_chain")


class TreeStatistics:
    """Sums over the verify steps since the last report, kept on the device: counting never waits for it."""

    def __init__(self, interval: int, device: torch.device | str) -> None:
        self.interval = max(1, interval)
        self.steps = 0
        self.sums = torch.zeros(len(_COUNTED), dtype=torch.int64, device=device)
        self.reports = True

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
                logger.info("%s", self.summary())
            self.steps = 0
            self.sums.zero_()

    def summary(self) -> str:
        """The means a request and step, in one line."""
        sums = dict(zip(_COUNTED, self.sums.tolist(), strict=True))
        requests = max(1, sums["requests"])
        return (
            f"DDTREE: {self.steps} verify steps of {sums['requests'] / max(1, self.steps):.1f} requests. Means: "
            f"tree size {sums['nodes'] / requests:.1f} nodes, tree depth {sums['depth'] / requests:.2f}, "
            f"accepted draft tokens {sums['accepted'] / requests:.2f}, "
            f"sibling-hit share {sums['left_chain'] / requests:.2f}"
        )
