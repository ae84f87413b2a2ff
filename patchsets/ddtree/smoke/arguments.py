"""What command lines with DDTREE resolve to."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

from .expect import expect
from .models import BLOCK_SIZE, Models, fields_of, overlaps, resolved


def _defaults(models: Models) -> str:
    args = models.resolve()
    expect(
        args,
        speculative_algorithm="DDTREE",
        speculative_ddtree_budget=16,
        speculative_ddtree_topk=8,
        speculative_ddtree_allow_hybrid_unsafe=False,
        speculative_dflash_block_size=BLOCK_SIZE,
        speculative_num_draft_tokens=17,
        speculative_num_steps=1,
        speculative_eagle_topk=1,
        max_running_requests=48,
        disable_overlap_schedule=not overlaps(),
        page_size=1,
    )
    overlap = "overlapped" if overlaps() else "not overlapped"
    return (
        f"block size {BLOCK_SIZE}, verify width 17, 48 running requests, attention backend {args.attention_backend}, "
        f"steps {overlap}"
    )


def _flags(models: Models) -> str:
    args = models.resolve(
        *("--speculative-ddtree-budget", "30", "--speculative-ddtree-topk", "3"),
        *("--speculative-ddtree-allow-hybrid-unsafe", "--speculative-dflash-block-size", "8"),
        *("--max-running-requests", "5", "--enable-mixed-chunk"),
    )
    expect(
        args,
        speculative_ddtree_budget=30,
        speculative_ddtree_topk=3,
        speculative_ddtree_allow_hybrid_unsafe=True,
        speculative_dflash_block_size=8,
        speculative_num_draft_tokens=31,
        max_running_requests=5,
        enable_mixed_chunk=False,
    )
    return "budget 30, topk 3, block size 8, verify width 31; mixed chunk turned off"


def _lower_case(models: Models) -> str:
    args = fields_of(models.in_python(speculative_algorithm="ddtree"))
    expect(args, speculative_algorithm="DDTREE", speculative_num_draft_tokens=17)
    return "ddtree is DDTREE"


def _small_budget(models: Models) -> str:
    """The draft block needs as many slots as it has positions, even where the tree is smaller."""
    widths = {"speculative_dflash_block_size": BLOCK_SIZE, "speculative_num_draft_tokens": BLOCK_SIZE}
    for args in _copies(models, "--speculative-ddtree-budget", "1"):
        expect(args, **widths)
    return f"budget 1: verify width {BLOCK_SIZE}, the block size"


def _resolved_twice(models: Models) -> str:
    """Processes are given copies of resolved arguments, and some resolve them again."""
    first, *copies = _copies(models)
    for copy in copies:
        expect(copy, speculative_dflash_block_size=BLOCK_SIZE, speculative_num_draft_tokens=17)
        assert copy.attention_backend == first.attention_backend, copy.attention_backend
    return f"{len(copies)} copies have the same widths and backend"


def _copies(models: Models, *flags: str) -> list[Any]:
    """The fields of resolved arguments, of what another process is given, and of a copy that is resolved anew."""
    record = models.record(*flags)
    copies = [record, pickle.loads(pickle.dumps(record))]
    if dataclasses.is_dataclass(record):
        copies.append(dataclasses.replace(record))  # type: ignore[type-var]
    return [fields_of(resolved(copy)) for copy in copies]


def _backend_chosen(models: Models) -> str:
    plain = models.resolve().attention_backend
    assert plain in ("flashinfer", "triton"), f"{plain} was chosen"
    latent = models.resolve(target=models.mla).attention_backend
    assert latent == "triton", f"{latent} was chosen for a model with multi-head latent attention"
    args = models.resolve("--decode-attention-backend", "torch_native")
    split = args.prefill_attention_backend or args.attention_backend
    assert split in ("flashinfer", "triton"), f"{split} was chosen beside a forced decode backend"
    return f"{plain}; {latent} for multi-head latent attention; {split} beside a forced decode backend"


def _page_size(models: Models) -> str:
    if not overlaps():
        expect(models.resolve("--page-size", "1"), page_size=1)
        return "1; this release's worker frees slots one by one"
    expect(models.resolve("--page-size", "16"), page_size=16, speculative_num_draft_tokens=17)
    return "16 is kept"


def _hybrid(models: Models) -> str:
    args = models.resolve("--disable-radix-cache", target=models.hybrid)
    expect(args, speculative_algorithm="DDTREE", speculative_num_draft_tokens=17)
    return "a hybrid target whose layers follow a tree resolves"


def _hybrid_allowed(models: Models) -> str:
    switch = ("--speculative-ddtree-allow-hybrid-unsafe", "--disable-radix-cache")
    args = models.resolve(*switch, target=models.lightning)
    expect(args, speculative_algorithm="DDTREE", speculative_num_draft_tokens=17)
    return "one whose layers do not resolves with the switch"


CONFIGURATION: dict[str, Callable[[Models], str]] = {
    "defaults": _defaults,
    "flags": _flags,
    "lower-case": _lower_case,
    "small-budget": _small_budget,
    "resolved-twice": _resolved_twice,
    "backend-chosen": _backend_chosen,
    "page-size": _page_size,
    "hybrid": _hybrid,
    "hybrid-with-switch": _hybrid_allowed,
}
