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
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sglang.srt.managers.schedule_batch import Req
    from sglang.srt.server_args import ServerArgs

logger = logging.getLogger(__name__)

DDTREE = "DDTREE"

# A tree mask has W x (prefix + W) entries a request, and the verify forward computes W rows of attention and of
# logits a request: beyond this the forward costs more than the tokens that it could save.
MAX_TREE_BUDGET = 1024

# Backends whose verify forward applies an arbitrary tree mask. Every other one ignores the mask while
# speculative_eagle_topk is 1 (fa3, fa4, intel_xpu), has no mask at all (trtllm_mha, trtllm_mla, flashmla, ascend ...),
# or takes one and was never tried with a tree of DDTREE's (aiter, wave): it would verify the tree as a chain,
# without an error and with wrong tokens.
TREE_MASK_BACKENDS = ("flashinfer", "triton")

# Architectures for which SGLang itself refuses flashinfer.
_NO_FLASHINFER_ARCHITECTURES = frozenset(
    {
        "Exaone4ForCausalLM",
        "ExaoneMoEForCausalLM",
        "Gemma4ForCausalLM",
        "Gemma4ForConditionalGeneration",
        "Gemma4UnifiedForConditionalGeneration",
        "GptOssForCausalLM",
        "Llama4ForConditionalGeneration",
        "Olmo2ForCausalLM",
    }
)


def positive_int(text: str) -> int:
    """A command-line value that must be a positive integer."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value <= 0:
        raise argparse.ArgumentTypeError(f"must be a positive integer, got {text!r}")
    return value


HYBRID_UNSAFE = (
    "DDTREE: --speculative-ddtree-allow-hybrid-unsafe is set and the target is hybrid. The recurrent state leaks "
    "between sibling branches of the tree: generated tokens differ from those of the target model alone."
)


def hybrid_refusal() -> str:
    """Why a hybrid target is refused, and what to do instead."""
    return (
        "DDTREE does not support hybrid targets (Mamba, GDN, linear attention): the recurrent state is advanced "
        "in node order, so a branch of the tree sees the tokens of its siblings. Use --speculative-algorithm "
        "DFLASH, or accept wrong output with --speculative-ddtree-allow-hybrid-unsafe."
    )


def is_on(text: str) -> bool:
    """Whether an environment variable's value switches something on."""
    return text.strip().lower() not in ("", "0", "false", "no", "off")


def verify_width(budget: int, block_size: int) -> int:
    """W: the root and the budget, and no less than the block that the drafter fills."""
    return max(budget + 1, block_size)


def prepare_ddtree_args(server_args: ServerArgs) -> None:
    """Refuse what the user asked for and DDTREE cannot do; choose the target attention backend when it is left open.

    Runs before SGLang's automatic choices: on Hopper and Blackwell these are backends that ignore a tree mask, and
    for a hybrid target SGLang's advice about the radix cache would hide the reason why DDTREE refuses it.
    """
    if (server_args.speculative_algorithm or "").upper() != DDTREE:
        return
    server_args.speculative_algorithm = DDTREE
    _refuse_bad_tree_size(server_args)
    _refuse_hybrid_target(server_args)
    if _verify_backend(server_args) is None:
        server_args.attention_backend = _best_backend(server_args)
        logger.info(
            "DDTREE: attention backend not specified. Use %s, which applies the tree mask.",
            server_args.attention_backend,
        )
    _refuse_backend_without_tree_mask(server_args)
    _refuse_paged_kv_cache(server_args)


def check_ddtree_args(server_args: ServerArgs) -> None:
    """Refuse what DDTREE cannot run with, and make ready for DFLASH's checks, which speak of B and not of W."""
    _refuse_bad_tree_size(server_args)
    if server_args.enable_dp_attention:
        raise ValueError(
            "DDTREE does not support data-parallel attention: an idle rank has no tree to verify. "
            "Remove --enable-dp-attention."
        )
    if server_args.pp_size != 1:
        raise ValueError(
            f"DDTREE supports only --pp-size 1, got {server_args.pp_size}: the draft model needs the hidden states "
            "of every layer in one process. Use --tp-size to spread the model over GPUs."
        )
    _refuse_backend_without_tree_mask(server_args)
    _refuse_paged_kv_cache(server_args)
    _restore_block_size(server_args)


def resolve_ddtree_args(server_args: ServerArgs) -> None:
    """Set B and W, once DFLASH has found B in the draft model's configuration or in the user's arguments."""
    block_size = int(server_args.speculative_num_draft_tokens or 0)
    if block_size < 2:
        raise ValueError(
            f"DDTREE needs a DFLASH block size of at least 2, got {block_size}: the first position of a block holds "
            "the last token and only the others are drafted. Set --speculative-dflash-block-size to the block size "
            "that the draft model was trained with."
        )
    width = verify_width(server_args.speculative_ddtree_budget, block_size)
    _refuse_too_large_tree(server_args, width)
    server_args.speculative_dflash_block_size = block_size
    server_args.speculative_num_draft_tokens = width
    _refuse_short_mamba_track_interval(server_args, width)
    logger.info(
        "DDTREE: block size %d, tree budget %d (verify width %d), at most %d candidates a position.",
        block_size,
        server_args.speculative_ddtree_budget,
        width,
        server_args.speculative_ddtree_topk,
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
    if len(req.origin_input_ids) + width > kv_cache_slots:
        return (
            f"DDTREE has no room for this request: its {len(req.origin_input_ids)} input tokens and the {width} nodes "
            f"of a draft tree are more than the {kv_cache_slots} tokens of the KV cache. Shorten the prompt, or start "
            "the server with a smaller --speculative-ddtree-budget."
        )
    return None


def is_hybrid_target(server_args: ServerArgs) -> bool:
    """Whether the target has layers with a recurrent state: Mamba, GDN, KDA, short convolution, linear attention."""
    hf_config = server_args.get_model_config().hf_config
    return _is_registered_linear(hf_config) or any(map(_has_recurrent_state, _nested_configs(hf_config)))


def _nested_configs(hf_config: Any) -> list[Any]:
    """The configuration itself and those of the language model inside it."""
    get_text_config = getattr(hf_config, "get_text_config", None)
    text_config = get_text_config() if get_text_config is not None else None
    inner = [getattr(hf_config, name, None) for name in ("text_config", "llm_config")]
    return [config for config in (hf_config, text_config, *inner) if config is not None]


def _has_recurrent_state(config: Any) -> bool:
    # Asked of the class, as the property itself needs an initialised process group.
    if getattr(type(config), "mamba2_cache_params", None) is None:
        return False
    for name in ("linear_layer_ids", "mamba_layer_ids"):
        layers = getattr(config, name, None)
        if layers is not None:
            return len(layers) > 0
    return True


def _is_registered_linear(hf_config: Any) -> bool:
    """Whether a plug-in has registered the target as a linear-attention model."""
    try:
        from sglang.srt.configs.linear_attn_model_registry import get_linear_attn_config
    except ImportError:
        return False
    return get_linear_attn_config(hf_config) is not None


def _refuse_bad_tree_size(server_args: ServerArgs) -> None:
    for name in ("speculative_ddtree_budget", "speculative_ddtree_topk"):
        value = getattr(server_args, name)
        if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
            raise ValueError(f"DDTREE needs {_flag(name)} to be a positive integer, got {value!r}.")
    if server_args.speculative_ddtree_budget > MAX_TREE_BUDGET:
        raise ValueError(
            f"DDTREE needs --speculative-ddtree-budget to be at most {MAX_TREE_BUDGET} tree nodes, "
            f"got {server_args.speculative_ddtree_budget}. Lower it: more nodes cost more than they save."
        )


def _flag(field: str) -> str:
    return "--" + field.replace("_", "-")


def _refuse_hybrid_target(server_args: ServerArgs) -> None:
    if not is_hybrid_target(server_args):
        return
    if not server_args.speculative_ddtree_allow_hybrid_unsafe:
        raise ValueError(hybrid_refusal())
    logger.warning(HYBRID_UNSAFE)


def _verify_backend(server_args: ServerArgs) -> str | None:
    """The backend that runs the target's verify forward; None while nobody has chosen one."""
    prefill, decode = server_args.get_attention_backends()
    chosen: str | None = decode if server_args.speculative_attention_mode == "decode" else prefill
    return chosen


def _best_backend(server_args: ServerArgs) -> str:
    from sglang.srt.utils.common import is_flashinfer_available

    return "flashinfer" if is_flashinfer_available() and _suits_flashinfer(server_args) else "triton"


def _suits_flashinfer(server_args: ServerArgs) -> bool:
    model_config = server_args.get_model_config()
    architectures = model_config.hf_config.architectures or []
    return not (
        server_args.use_mla_backend()
        or model_config.has_attention_sinks
        or _NO_FLASHINFER_ARCHITECTURES.intersection(architectures)
    )


def _refuse_backend_without_tree_mask(server_args: ServerArgs) -> None:
    backend = _verify_backend(server_args)
    if backend not in TREE_MASK_BACKENDS:
        raise ValueError(
            f"DDTREE cannot verify a tree on the attention backend {backend!r}, which is not known to apply a tree "
            f"mask. Use --attention-backend {' or '.join(TREE_MASK_BACKENDS)}, or leave it out. With separate "
            "prefill and decode backends, verification runs on the one that --speculative-attention-mode names."
        )
    if backend == "flashinfer" and server_args.use_mla_backend():
        raise ValueError(
            "DDTREE cannot verify a tree on the attention backend 'flashinfer' for a model with multi-head latent "
            "attention (MLA): its kernels take no tree mask. Use --attention-backend triton, or leave it out."
        )


def _refuse_paged_kv_cache(server_args: ServerArgs) -> None:
    if server_args.page_size not in (None, 1):
        raise ValueError(
            f"DDTREE supports only --page-size 1, got {server_args.page_size}: the nodes of a rejected branch are "
            "freed one by one. Use --page-size 1, or leave it out."
        )


def _restore_block_size(server_args: ServerArgs) -> None:
    """Undo what an earlier resolution of the same arguments set, such as that of a copy for another process."""
    block_size = server_args.speculative_dflash_block_size
    if block_size is None:
        return
    if server_args.speculative_num_draft_tokens == verify_width(server_args.speculative_ddtree_budget, block_size):
        server_args.speculative_num_draft_tokens = block_size


def _refuse_too_large_tree(server_args: ServerArgs, width: int) -> None:
    """What no request of this target could use."""
    model_config = server_args.get_model_config()
    if server_args.speculative_ddtree_topk > model_config.vocab_size:
        raise ValueError(
            f"DDTREE needs --speculative-ddtree-topk to be at most the vocabulary of the target, "
            f"{model_config.vocab_size} tokens, got {server_args.speculative_ddtree_topk}."
        )
    if width >= model_config.context_len:
        raise ValueError(
            f"DDTREE needs --speculative-ddtree-budget to fit into the context length of {model_config.context_len} "
            f"tokens beside a prompt, got {server_args.speculative_ddtree_budget}. Lower it, or raise --context-length."
        )


def _refuse_short_mamba_track_interval(server_args: ServerArgs, verify_width: int) -> None:
    """SGLang's own check of this ran before W was known."""
    if not (server_args.speculative_ddtree_allow_hybrid_unsafe and is_hybrid_target(server_args)):
        return
    if server_args.enable_mamba_extra_buffer() and server_args.mamba_track_interval < verify_width:
        raise ValueError(
            f"DDTREE needs --mamba-track-interval to be at least the verify width {verify_width}, "
            f"got {server_args.mamba_track_interval}. Raise it, or lower --speculative-ddtree-budget."
        )
