"""DDTREE's own server arguments: what is chosen, what is refused, and the numbers that follow from them.

Every function here is called by one guarded line in SGLang, in this order, and only for DDTREE:

1. :func:`prepare_ddtree_args` before SGLang chooses anything by itself;
2. :func:`check_ddtree_args` before DFLASH's own checks, which DDTREE inherits;
3. :func:`resolve_ddtree_args` after them, when the block size is known.

Two widths must not be confused. B is DFLASH's block size: how many positions the draft model fills in one
forward. W is the verify width: how many rows the target model verifies in one forward, the tree's root, its budget of
nodes, and padding where that is less than B, since SGLang reserves W slots of the KV cache for the draft block too.
After resolution ``speculative_dflash_block_size`` is B and ``speculative_num_draft_tokens`` is W.

Nothing heavy is imported here: server arguments are read by processes that never load torch.
"""

from __future__ import annotations

import argparse
import logging
from typing import TYPE_CHECKING

from sglang.srt.speculative.ddtree_families import recurrence_of
from sglang.srt.speculative.ddtree_refusals import flag_of, refuse_unsupported
from sglang.srt.speculative.ddtree_resolution import (
    decide,
    has_mamba_extra_buffer,
    model_config_of,
    moves_kv_cache,
    uses_mla,
    verify_backend_of,
    view_of,
)

if TYPE_CHECKING:
    from sglang.srt.managers.schedule_batch import Req
    from sglang.srt.server_args import ServerArgs

logger = logging.getLogger(__name__)

DDTREE = "DDTREE"

# A tree mask has W x (prefix + W) entries a request, and the verify forward computes W rows of attention and of
# logits a request: beyond this the forward costs more than the tokens that it could save.
MAX_TREE_BUDGET = 1024

# Architectures for which SGLang itself refuses flashinfer.
_NO_FLASHINFER_ARCHITECTURES = frozenset(
    {
        "Exaone4ForCausalLM",
        "ExaoneMoEForCausalLM",
        "ExaoneMoeForCausalLM",
        "Gemma4ForCausalLM",
        "Gemma4ForConditionalGeneration",
        "Gemma4UnifiedForConditionalGeneration",
        "GptOssForCausalLM",
        "Llama4ForCausalLM",
        "Llama4ForConditionalGeneration",
        "Olmo2ForCausalLM",
    }
)


# What the command line says about each --speculative-ddtree argument.
FLAG_HELP = {
    "budget": "DDTREE only. How many nodes the draft tree has, the root not counted. "
    "The target model verifies this many plus one tokens per request and step.",
    "topk": "DDTREE only. How many candidate tokens of each drafted position may enter the draft tree.",
    "allow_hybrid_unsafe": "DDTREE only. Allow targets with recurrent layers (Mamba, linear attention, short "
    "convolution) of a family whose state leaks between the branches of the tree, although the generated tokens are "
    "wrong. Families for which a tree is exact need no flag.",
}


def positive_int(text: str) -> int:
    """A command-line value that must be a positive integer."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value <= 0:
        raise argparse.ArgumentTypeError(f"must be a positive integer, got {text!r}")
    return value


def is_on(text: str) -> bool:
    """Whether an environment variable's value switches something on."""
    return text.strip().lower() not in ("", "0", "false", "no", "off")


def verify_width(budget: int, block_size: int) -> int:
    """W: the root and the budget, and no less than the block that the drafter fills."""
    return max(budget + 1, block_size)


def prepare_ddtree_args(server_args: ServerArgs) -> None:
    """Refuse what the user asked for and DDTREE cannot do; choose the target attention backend when it is left open.

    Runs before SGLang's automatic choices: on Hopper and Blackwell these are backends that ignore a tree mask, and
    for a hybrid target SGLang's advice about the radix cache would hide the reason why DDTREE refuses its family.
    """
    if (view_of(server_args).speculative_algorithm or "").upper() != DDTREE:
        return
    decide(server_args, speculative_algorithm=DDTREE)
    _refuse_bad_tree_size(server_args)
    _refuse_hybrid_target(server_args)
    if verify_backend_of(server_args) is None:
        backend = _best_backend(server_args)
        decide(server_args, attention_backend=backend)
        logger.info("DDTREE: attention backend not specified. Use %s, which applies the tree mask.", backend)
    refuse_unsupported(server_args)


def check_ddtree_args(server_args: ServerArgs) -> None:
    """Refuse what DDTREE cannot run with, and make ready for DFLASH's checks, which speak of B and not of W."""
    _refuse_bad_tree_size(server_args)
    refuse_unsupported(server_args)
    _restore_block_size(server_args)


def resolve_ddtree_args(server_args: ServerArgs) -> None:
    """Set B and W, once DFLASH has found B in the draft model's configuration or in the user's arguments."""
    view = view_of(server_args)
    block_size = int(view.speculative_num_draft_tokens or 0)
    if block_size < 2:
        raise ValueError(
            f"DDTREE needs a DFLASH block size of at least 2, got {block_size}: the first position of a block holds "
            "the last token and only the others are drafted. Set --speculative-dflash-block-size to the block size "
            "that the draft model was trained with."
        )
    width = verify_width(view.speculative_ddtree_budget, block_size)
    _refuse_too_large_tree(server_args, width)
    decide(server_args, speculative_dflash_block_size=block_size, speculative_num_draft_tokens=width)
    if view.enable_mixed_chunk:  # DFLASH turns it off by itself until 0.5.18, and supports it afterwards
        decide(server_args, enable_mixed_chunk=False)
        logger.warning("DDTREE: mixed chunked prefill is disabled, as it was never tried with a tree.")
    _refuse_short_mamba_track_interval(server_args, width)
    logger.info(
        "DDTREE: block size %d, tree budget %d (verify width %d), at most %d candidates a position.",
        block_size,
        view.speculative_ddtree_budget,
        width,
        view.speculative_ddtree_topk,
    )


def validate_ddtree_request(req: Req, width: int, kv_cache_slots: int) -> str | None:
    """Why DDTREE cannot serve a request exactly, or None. DFLASH's own refusals come before.

    `width` is W; `kv_cache_slots` is the size of the target's KV cache in tokens.
    """
    params = req.sampling_params
    penalties = {
        "frequency_penalty": params.frequency_penalty != 0.0,
        "presence_penalty": params.presence_penalty != 0.0,
        "repetition_penalty": params.repetition_penalty != 1.0,
        "min_new_tokens": params.min_new_tokens > 0,
    }
    for name, is_used in penalties.items():
        if is_used:
            return (
                f"DDTREE speculative decoding does not support {name}: it depends on the tokens before, which differ "
                f"from branch to branch of a draft tree. Leave {name} out."
            )
    if getattr(req, "return_sampling_mask", False):  # from 0.5.17 on
        return (
            "DDTREE speculative decoding does not support return_sampling_mask: a node's support is not that of a "
            "drafted chain. Leave return_sampling_mask out."
        )
    trees = 2 if moves_kv_cache() else 1  # where batches overlap, the scheduler reserves the slots of two steps
    if len(req.origin_input_ids) + trees * width > kv_cache_slots:
        return (
            f"DDTREE has no room for this request: its {len(req.origin_input_ids)} input tokens and the {width} nodes "
            f"of {'a draft tree' if trees == 1 else 'each of two draft trees'} are more than the {kv_cache_slots} "
            "tokens of the KV cache. Shorten the prompt, or start the server with a smaller "
            "--speculative-ddtree-budget."
        )
    return None


def _refuse_bad_tree_size(server_args: ServerArgs) -> None:
    view = view_of(server_args)
    for name in ("speculative_ddtree_budget", "speculative_ddtree_topk"):
        value = getattr(view, name)
        if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
            raise ValueError(f"DDTREE needs {flag_of(name)} to be a positive integer, got {value!r}.")
    if view.speculative_ddtree_budget > MAX_TREE_BUDGET:
        raise ValueError(
            f"DDTREE needs --speculative-ddtree-budget to be at most {MAX_TREE_BUDGET} tree nodes, "
            f"got {view.speculative_ddtree_budget}. Lower it: more nodes cost more than they save."
        )


def _refuse_hybrid_target(server_args: ServerArgs) -> None:
    """Raise for a target whose recurrent layers cannot follow a tree, unless the user has asked for it."""
    recurrence = recurrence_of(model_config_of(server_args))
    if recurrence is None or recurrence.is_exact:
        return
    if not view_of(server_args).speculative_ddtree_allow_hybrid_unsafe:
        raise ValueError(recurrence.refusal)
    logger.warning("%s", recurrence.warning)


def _best_backend(server_args: ServerArgs) -> str:
    from sglang.srt.utils.common import is_flashinfer_available

    return "flashinfer" if is_flashinfer_available() and _suits_flashinfer(server_args) else "triton"


def _suits_flashinfer(server_args: ServerArgs) -> bool:
    model_config = model_config_of(server_args)
    architectures = model_config.hf_config.architectures or []
    return not (
        uses_mla(server_args)
        or model_config.has_attention_sinks
        or _NO_FLASHINFER_ARCHITECTURES.intersection(architectures)
    )


def _restore_block_size(server_args: ServerArgs) -> None:
    """Undo what an earlier resolution of the same arguments set, such as that of a copy for another process."""
    view = view_of(server_args)
    block_size = view.speculative_dflash_block_size
    if block_size is None:
        return
    if view.speculative_num_draft_tokens == verify_width(view.speculative_ddtree_budget, block_size):
        decide(server_args, speculative_num_draft_tokens=block_size)


def _refuse_too_large_tree(server_args: ServerArgs, width: int) -> None:
    """What no request of this target could use."""
    view, model_config = view_of(server_args), model_config_of(server_args)
    if view.speculative_ddtree_topk > model_config.vocab_size:
        raise ValueError(
            f"DDTREE needs --speculative-ddtree-topk to be at most the vocabulary of the target, "
            f"{model_config.vocab_size} tokens, got {view.speculative_ddtree_topk}."
        )
    if width >= model_config.context_len:
        raise ValueError(
            f"DDTREE needs --speculative-ddtree-budget to fit into the context length of {model_config.context_len} "
            f"tokens beside a prompt, got {view.speculative_ddtree_budget}. Lower it, or raise --context-length."
        )


def _refuse_short_mamba_track_interval(server_args: ServerArgs, verify_width: int) -> None:
    """SGLang's own check of this ran before W was known."""
    view = view_of(server_args)
    if recurrence_of(model_config_of(server_args)) is None:
        return
    if has_mamba_extra_buffer(server_args) and view.mamba_track_interval < verify_width:
        raise ValueError(
            f"DDTREE needs --mamba-track-interval to be at least the verify width {verify_width}, "
            f"got {view.mamba_track_interval}. Raise it, or lower --speculative-ddtree-budget."
        )
