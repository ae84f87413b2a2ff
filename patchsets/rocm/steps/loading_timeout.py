"""A constant is changed: half an hour for the slowest rank to load its weights.

Reported as sgl-project/sglang issue 5457 and pull requests 9305, 9998, 15637, 39128 and 39629: large checkpoints on
shared or cold storage take one rank more than 480 seconds longer than another, and the group is ended with "other ranks
that didn't finish loading". 1800 seconds is what the last but one proposes.
"""

from __future__ import annotations

from ddtree_patcher.codemods import SetConstant
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Refusal, Step, Variant
from ddtree_patcher.shape import Defines, Lacks

from ..files import LOAD_MODEL_UTILS, MODEL_RUNNER

_NAME = "UNBALANCED_MODEL_LOADING_TIMEOUT_S"
_IN_RUNNER, _IN_UTILS = Defines(MODEL_RUNNER, _NAME), Defines(LOAD_MODEL_UTILS, _NAME)
_BEFORE = f"{_NAME} = 480  # seconds\n"
_AFTER = f"{_NAME} = 1800  # seconds\n"
_ELSEWHERE = {MODEL_RUNNER: "class ModelRunner: ...\n"}

STEP = Step(
    id="loading-timeout",
    summary="a rank may take 1800 seconds longer than the others to load its weights",
    why="A constant that is too small for the storage, and that neither a flag nor a variable reaches.",
    variants=(
        Variant("model_runner", when=(_IN_RUNNER,), edits=(SetConstant(MODEL_RUNNER, _NAME, "480", "1800"),)),
        Variant(
            "load_model_utils",
            when=(_IN_UTILS, Lacks(_IN_RUNNER)),
            edits=(SetConstant(LOAD_MODEL_UTILS, _NAME, "480", "1800"),),
        ),
    ),
    cases=(
        Case("model_runner", {MODEL_RUNNER: _BEFORE}, {MODEL_RUNNER: _AFTER}),
        Case("load_model_utils", {LOAD_MODEL_UTILS: _BEFORE, **_ELSEWHERE}, {LOAD_MODEL_UTILS: _AFTER}),
    ),
    refusals=(
        Refusal({MODEL_RUNNER: _BEFORE.replace("480", "600")}, StepOutcome.ANCHOR_MISSING),
        Refusal({MODEL_RUNNER: _BEFORE.replace("480", "envs.TIMEOUT.get()")}, StepOutcome.ANCHOR_MISSING),
        Refusal(_ELSEWHERE, StepOutcome.ANCHOR_MISSING),
    ),
)
