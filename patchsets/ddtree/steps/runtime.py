"""The modules that draft, verify and commit trees."""

from __future__ import annotations

from ddtree_patcher.codemods import AddFile, AddStampedFile
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Contract, Refusal, Step, Variant
from ddtree_patcher.shape import Defines

from ..files import (
    DDTREE_ARGS,
    DDTREE_CANDIDATES,
    DDTREE_CONFIG,
    DDTREE_FAMILIES,
    DDTREE_INPUT,
    DDTREE_PATCHSET,
    DDTREE_RECURRENT,
    DDTREE_ROOM,
    DDTREE_SELFCHECK,
    DDTREE_START,
    DDTREE_STATS,
    DDTREE_TREE,
    DDTREE_WORKER,
    DFLASH_INFO,
    FORWARD_BATCH_INFO,
    LOGITS_PROCESSOR,
    SAMPLER,
    runtime,
)

_MODULES = {
    DDTREE_TREE: "ddtree_tree.py",
    DDTREE_CONFIG: "ddtree_config.py",
    DDTREE_CANDIDATES: "ddtree_candidates.py",
    DDTREE_INPUT: "ddtree_input.py",
    DDTREE_STATS: "ddtree_stats.py",
    DDTREE_RECURRENT: "ddtree_recurrent.py",
    DDTREE_ROOM: "ddtree_room.py",
    DDTREE_WORKER: "ddtree_worker.py",
    DDTREE_SELFCHECK: "ddtree_selfcheck.py",
    DDTREE_START: "ddtree_start.py",
}
_SAMPLER_PARAMETERS = (
    "self",
    "logits_output",
    "sampling_info",
    "return_logprob",
    "top_logprobs_nums",
    "token_ids_logprobs",
    "positions",
)
_BEFORE = {
    DFLASH_INFO: "class DFlashVerifyInput: ...\n",
    DDTREE_ARGS: "def is_on(text): ...\n",
    DDTREE_FAMILIES: "class Recurrence: ...\ndef recurrence_of(model_config): ...\n",
    SAMPLER: f"""\
class Sampler:
    def forward({", ".join(_SAMPLER_PARAMETERS)}): ...


def apply_custom_logit_processor(logits, sampling_batch_info, num_tokens_in_batch=1): ...
""",
    LOGITS_PROCESSOR: "class LogitsProcessorOutput: ...\n",
    FORWARD_BATCH_INFO: "class CaptureHiddenMode: ...\nclass ForwardBatch: ...\nclass ForwardMode: ...\n",
}

STEP = Step(
    id="runtime",
    summary="the modules that draft, verify and commit trees are there",
    why=(
        "The tree is DDTREE's own: tensors that build, pack and walk it, the glue between them and a DFLASH worker, "
        "and the check at start-up that the attention backend keeps branches apart. They are modules of their own, so "
        "that "
        "SGLang's files are touched in as few lines as can be."
    ),
    requires=("flags",),
    variants=(
        Variant(
            "verify_input_commits",
            when=(Defines(DFLASH_INFO, "DFlashVerifyInput"),),
            edits=(
                *(AddFile(path, runtime(name)) for path, name in _MODULES.items()),
                AddStampedFile(DDTREE_PATCHSET, runtime("ddtree_patchset.py")),
            ),
            contract=(
                Contract(SAMPLER, "Sampler.forward", _SAMPLER_PARAMETERS),
                Contract(
                    SAMPLER,
                    "apply_custom_logit_processor",
                    ("logits", "sampling_batch_info", "num_tokens_in_batch"),
                    called=True,
                ),
                Contract(LOGITS_PROCESSOR, "LogitsProcessorOutput"),
                Contract(FORWARD_BATCH_INFO, "CaptureHiddenMode"),
                Contract(FORWARD_BATCH_INFO, "ForwardBatch"),
                Contract(FORWARD_BATCH_INFO, "ForwardMode"),
                Contract(DDTREE_ARGS, "is_on", ("text",)),
                Contract(DDTREE_FAMILIES, "Recurrence"),
                Contract(DDTREE_FAMILIES, "recurrence_of", ("model_config",)),
            ),
        ),
    ),
    cases=(Case("verify_input_commits", _BEFORE, {}),),
    refusals=(
        Refusal(
            {**_BEFORE, SAMPLER: "class Sampler:\n    def forward(self, logits): ...\n"},
            StepOutcome.PRECONDITION_FAILED,
        ),
        Refusal({**_BEFORE, DFLASH_INFO: "x = 1\n"}, StepOutcome.ANCHOR_MISSING),
    ),
)
