"""Pearson's test: do counts come from these probabilities?"""

from __future__ import annotations

import torch
from torch import Tensor

FEWEST = 5  # a cell that expects fewer says little, and χ² is no good approximation there


def chance(counts: Tensor, probabilities: Tensor) -> float:
    """How likely counts at least as odd as these are; 0 where something happened that cannot.

    Both are [cells]. Cells that expect too few are counted as one, together with the next larger where they must.
    """
    if bool(counts[probabilities == 0].any()):
        return 0.0
    probabilities, order = probabilities.double().sort()
    seen, expected = counts[order].double(), probabilities * counts.sum()
    rare = max(int((expected < FEWEST).sum()), int((expected.cumsum(0) < FEWEST).sum()) + 1)
    seen = torch.cat([seen[:rare].sum()[None], seen[rare:]])
    expected = torch.cat([expected[:rare].sum()[None], expected[rare:]])
    statistic = ((seen - expected).square() / expected).sum()
    return float(torch.special.gammaincc(torch.tensor((len(seen) - 1) / 2).double(), statistic / 2))
