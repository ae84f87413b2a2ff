"""What a server with DDTREE does not start with, and why: arguments that would make its tokens wrong without an error.

A tree is verified in one forward in which every node must see its own ancestors and no sibling, and from 0.5.14 on the
accepted path is then moved to where a chain would lie in the KV cache. An argument is here when it verifies rows in
the order in which they lie, as a chain, or keeps something beside the KV cache that is not moved with it. Arguments are
known by the names of all releases; what a release does not have cannot be set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sglang.srt.speculative.ddtree_resolution import moves_kv_cache, uses_mla, verify_backend_of, view_of

# Backends whose verify forward applies an arbitrary tree mask. Every other one ignores the mask while
# speculative_eagle_topk is 1 (fa3, fa4, intel_xpu), has no mask at all (trtllm_mha, trtllm_mla, flashmla, ascend ...),
# or takes one and was never tried with a tree of DDTREE's (aiter, wave): it would verify the tree as a chain,
# without an error and with wrong tokens.
TREE_MASK_BACKENDS = ("flashinfer", "triton")


def flag_of(field: str) -> str:
    """The command line's name of a field."""
    return "--" + field.replace("_", "-")


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Server arguments that DDTREE refuses for one reason."""

    what: str
    why: str
    switches: tuple[str, ...] = ()  # fields that must be off
    sizes: tuple[str, ...] = ()  # fields that must be 1

    def refuse(self, view: Any) -> None:
        for field in self.switches:
            if getattr(view, field, False):
                raise ValueError(f"DDTREE does not support {self.what}: {self.why}. Remove {flag_of(field)}.")
        for field in self.sizes:
            if (size := getattr(view, field, None)) not in (None, 1):
                raise ValueError(
                    f"DDTREE does not support {self.what}: {self.why}. Use {flag_of(field)} 1, got {size}."
                )


_ALWAYS = (
    Unsupported(
        "pipeline parallelism",
        "the draft model needs the hidden states of every layer in one process",
        sizes=("pp_size",),
    ),
    # --enable-dp-attention, which 0.5.22 and later turn into a size.
    Unsupported(
        "data-parallel attention (--enable-dp-attention)",
        "an idle rank has no tree to verify",
        switches=("enable_dp_attention",),
        sizes=("attn_dp_size",),
    ),
    Unsupported(
        "context parallelism",
        "the rows of a tree and their mask would be split by their place, as if they were a chain",
        switches=(
            "enable_cp_tp_group_sharing",
            "enable_prefill_cp",
            "enable_prefill_context_parallel",
            "enable_nsa_prefill_context_parallel",
            "enable_dsa_prefill_context_parallel",
        ),
        sizes=("attn_cp_size", "dcp_size"),
    ),
    Unsupported(
        "layer norms in sequence parallel",
        "hidden states that are split over the ranks are gathered for a chain alone",
        switches=("enable_layernorm_sp",),
    ),
    Unsupported(
        "two-batch overlap",
        "a tree's mask and links cannot be split into two batches",
        switches=("enable_two_batch_overlap",),
    ),
    Unsupported(
        "hierarchical sparse attention",
        "it swaps the KV cache in for a chain alone",
        switches=("enable_hisparse",),
    ),
    Unsupported(
        "replayed states of recurrent layers",
        "they are verified in the order of the rows, so a branch would see the tokens of its siblings",
        switches=("enable_linear_replayssm", "enable_linear_replayssm_spec", "enable_gdn_replayssm_spec"),
    ),
    Unsupported(
        "block verification",
        "it accepts or rejects a chain as a whole, and a tree is not one",
        switches=("speculative_use_block_verification",),
    ),
)
# Where the accepted path is moved.
_WHERE_KV_MOVES = (
    Unsupported(
        "the unified memory pool",
        "it moves whole pages of the KV cache, and the accepted path of a tree is moved token by token",
        switches=("enable_unified_memory",),
    ),
    Unsupported(
        "a sharded KV cache",
        "the accepted path of a tree would have to be moved from rank to rank",
        switches=("enable_kv_cache_sharding",),
    ),
    Unsupported(
        "what is recorded beside the KV cache",
        "experts and indices are kept by the place of a token in it, and are not moved with the accepted path",
        switches=("enable_return_routed_experts", "enable_return_indexer_topk"),
    ),
)


def refuse_unsupported(server_args: Any) -> None:
    """Raise `ValueError` for the first argument that DDTREE cannot run with, naming it and what to do instead."""
    view = view_of(server_args)
    for item in _ALWAYS:
        item.refuse(view)
    _refuse_backend_without_tree_mask(server_args)
    if not moves_kv_cache():
        _refuse_paged_kv_cache(view)
        return
    for item in _WHERE_KV_MOVES:
        item.refuse(view)
    _refuse_scaled_kv_cache(view)


def _refuse_backend_without_tree_mask(server_args: Any) -> None:
    backend = verify_backend_of(server_args)
    if backend not in TREE_MASK_BACKENDS:
        raise ValueError(
            f"DDTREE cannot verify a tree on the attention backend {backend!r}, which is not known to apply a tree "
            f"mask. Use --attention-backend {' or '.join(TREE_MASK_BACKENDS)}, or leave it out. With separate "
            "prefill and decode backends, verification runs on the one that --speculative-attention-mode names."
        )
    if backend == "flashinfer" and uses_mla(server_args):
        raise ValueError(
            "DDTREE cannot verify a tree on the attention backend 'flashinfer' for a model with multi-head latent "
            "attention (MLA): its kernels take no tree mask. Use --attention-backend triton, or leave it out."
        )
    if backend == "triton" and _splits_verify():
        raise ValueError(
            "DDTREE cannot verify a tree on the attention backend 'triton' with its split-KV kernel for this AMD GPU, "
            "which ignores the tree mask. Set the environment variable SGLANG_ENABLE_SPLITKV_VERIFY=0."
        )


def _splits_verify() -> bool:
    """On CDNA 4 (gfx95) Triton verifies with a kernel that is causal whatever the mask is."""
    try:
        from sglang.srt.environ import envs
        from sglang.srt.utils.common import is_gfx95_supported
    except ImportError:
        return False
    switch = getattr(envs, "SGLANG_ENABLE_SPLITKV_VERIFY", None)
    return switch is not None and bool(is_gfx95_supported()) and bool(switch.get())


def _refuse_paged_kv_cache(view: Any) -> None:
    if view.page_size not in (None, 1):
        raise ValueError(
            f"DDTREE supports only --page-size 1, got {view.page_size}: the nodes of a rejected branch are "
            "freed one by one. Use --page-size 1, or leave it out."
        )


def _refuse_scaled_kv_cache(view: Any) -> None:
    """FP4 pools keep scales beside their entries, and not every one moves them along."""
    dtype = str(view.kv_cache_dtype)
    if "fp4" in dtype:
        raise ValueError(
            f"DDTREE does not support --kv-cache-dtype {dtype}: the accepted path of a tree is moved within the KV "
            "cache, and the scales of FP4 entries would stay behind. Use --kv-cache-dtype auto, bf16 or fp8_e4m3."
        )


def refuse_sliding_window(window: int | None, context_len: int) -> None:
    """Raise where layers of the target attend to the last `window` tokens alone: known when its model is there.

    The kernels count a row's window by where the row lies, and not by its depth: a node that lies behind its siblings
    would see a shorter past than the token that it stands for.
    """
    if window is not None and 0 < window < context_len:
        raise ValueError(
            f"DDTREE does not support targets with sliding-window attention (here {window} tokens): the attention "
            "kernels count the window in rows, so a node behind its siblings sees fewer tokens than it should. Use "
            f"--speculative-algorithm DFLASH, or a --context-length of at most {window}."
        )
