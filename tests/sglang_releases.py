"""The releases of SGLang that tests are made for."""

from __future__ import annotations

import os

from fetch_wheels import releases

WITHOUT_DFLASH = "0.5.9"
WITH_DFLASH = tuple(version for version in releases() if version != WITHOUT_DFLASH)  # each has a snapshot
SUPPORTED = WITH_DFLASH
# DFLASH has another worker from here on, and the scheduler overlaps the processing of one batch with the next one.
OVERLAPPING = SUPPORTED[SUPPORTED.index("0.5.14") :]
BEFORE_OVERLAP = SUPPORTED[: SUPPORTED.index("0.5.14")]
# The first and the last release of each worker: those between are nearly these.
ENDS = (BEFORE_OVERLAP[0], BEFORE_OVERLAP[-1], OVERLAPPING[0], OVERLAPPING[-1])
# What DFLASH serves, and so DDTREE, from some release on.
WITH_GRAMMAR = SUPPORTED[SUPPORTED.index("0.5.17") :]
WITH_LOGPROBS = SUPPORTED[SUPPORTED.index("0.5.18") :]
# Hybrid targets: one release of every era, unless all are asked for (`make test-all`).
EVERY = bool(os.environ.get("DDTREE_TEST_ALL"))
WITH_DELTA_NETS = SUPPORTED if EVERY else ("0.5.11", "0.5.13.post1", "0.5.14", "0.5.18", "0.5.23")
WITH_MAMBA2 = SUPPORTED[SUPPORTED.index("0.5.19") :] if EVERY else ("0.5.23",)  # from there on DFLASH serves it
STEPS = (
    *("enum", "flags", "validation", "choices", "runtime", "verify-input", "worker-import", "worker-branch"),
    *("widths", "row-headroom", "graph-mask", "tree-gate", "conv-windows", "node-commit", "state-room"),
    *("deferred-clear", "requests", "draft-window", "hidden-states", "lazy-states", "metrics"),
)
# Step → the releases that need it, where some do not.
NEEDED_BY = {
    "choices": ("0.5.11",),  # it alone lists the algorithms that the command line takes
    "widths": OVERLAPPING,
    "row-headroom": OVERLAPPING,
    "conv-windows": OVERLAPPING,
    "deferred-clear": ("0.5.13", "0.5.13.post1"),
    "draft-window": SUPPORTED[SUPPORTED.index("0.5.13") :],
    "hidden-states": OVERLAPPING,
    "lazy-states": ("0.5.17",),
    "metrics": ("0.5.23",),
}


def outcomes(version: str, word: str) -> dict[str, str]:
    """Step → outcome where all is well: ``word``, but for a step that the release does not need."""
    return {step: word if version in NEEDED_BY.get(step, (version,)) else "not_needed" for step in STEPS}
