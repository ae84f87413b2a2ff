"""DDTREE (Diffusion Draft Tree) speculative decoding for SGLang: the ordered steps at a glance.

Each step says what it does, why, and what proves it, in its own file under ``steps/``. ``fragments/`` holds the code
that goes into existing modules, ``runtime/`` the modules that are added; ``smoke/`` and ``e2e/`` are the programs that
the target's own interpreter runs, to confirm the wiring and that it works.
"""

from ddtree_patcher.patchset import Patchset, Precondition
from ddtree_patcher.shape import HasFile

from .files import DFLASH_INFO
from .steps import (
    choices,
    conv_windows,
    deferred_clear,
    enum,
    flags,
    graph_mask,
    literals,
    node_commit,
    requests,
    row_headroom,
    runtime,
    state_room,
    tree_gate,
    validation,
    verify_input,
    widths,
    worker_branch,
    worker_import,
)
from .verdicts import SENTINELS

PATCHSET = Patchset(
    id="ddtree",
    version="0.1.0",
    summary="DDTREE speculative decoding: one DFLASH draft forward, a tree of candidates, one target forward",
    distribution="sglang",
    package="sglang",
    supports=">=0.5.11",
    preconditions=(
        Precondition(
            HasFile(DFLASH_INFO),
            "this SGLang has no DFLASH speculative decoding, on which DDTREE is built",
            "Install SGLang 0.5.11 or later: it is the first release that has DFLASH.",
        ),
    ),
    steps=(
        enum.STEP,
        flags.STEP,
        validation.STEP,
        choices.STEP,
        runtime.STEP,
        verify_input.STEP,
        worker_import.STEP,
        worker_branch.STEP,
        widths.STEP,
        row_headroom.STEP,
        graph_mask.STEP,
        tree_gate.STEP,
        conv_windows.STEP,
        node_commit.STEP,
        state_room.STEP,
        deferred_clear.STEP,
        requests.STEP,
        *literals.STEPS,
    ),
    sentinels=SENTINELS,
    smoke="smoke/program.py",
    e2e="e2e/program.py",
)
