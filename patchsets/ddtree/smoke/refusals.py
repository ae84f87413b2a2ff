"""Command lines with DDTREE that must be refused, each by the words that its message must hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from .expect import refused, refused_by_argparse
from .models import Models, kv_cache_types, options, overlaps

Check = tuple[str, Callable[[], str]]

_BUDGET, _TOPK, _BACKEND = "--speculative-ddtree-budget", "--speculative-ddtree-topk", "--attention-backend"
_ALWAYS = (
    "--enable-two-batch-overlap",
    "--enable-hisparse",
    "--enable-layernorm-sp",
    "--enable-linear-replayssm",
    "--enable-linear-replayssm-spec",
    "--enable-gdn-replayssm-spec",
    "--speculative-use-block-verification",
)
_WHERE_KV_MOVES = (
    "--enable-unified-memory",
    "--enable-return-routed-experts",
    "--enable-return-indexer-topk",
)


def refusals(models: Models) -> Iterator[Check]:
    yield from _of_the_tree(models)
    yield from _of_backends(models)
    yield from _of_parallelism(models)
    yield from _of_features(models)


def _of_the_tree(models: Models) -> Iterator[Check]:
    def by_argv(*flags: str, words: tuple[str, ...], target: str = "") -> Callable[[], str]:
        return lambda: refused(lambda: models.resolve(*flags, target=target), *words)

    def by_parser(*flags: str, words: tuple[str, ...]) -> Callable[[], str]:
        return lambda: refused_by_argparse(lambda: models.resolve(*flags), *words)

    def in_python(**fields: object) -> Callable[[], str]:
        (name,) = fields
        return lambda: refused(lambda: models.in_python(**fields), "DDTREE", "--" + name.replace("_", "-"))

    yield "budget-zero", by_parser(_BUDGET, "0", words=(_BUDGET, "positive integer"))
    yield "budget-negative", by_parser(_BUDGET, "-3", words=(_BUDGET, "positive integer"))
    yield "budget-text", by_parser(_BUDGET, "many", words=(_BUDGET, "positive integer"))
    yield "topk-zero", by_parser(_TOPK, "0", words=(_TOPK, "positive integer"))
    yield "budget-zero-in-python", in_python(speculative_ddtree_budget=0)
    yield "budget-bool-in-python", in_python(speculative_ddtree_budget=True)
    yield "topk-zero-in-python", in_python(speculative_ddtree_topk=0)
    yield "budget-too-big", by_argv(_BUDGET, "100000", words=("DDTREE", _BUDGET, "1024"))
    yield "budget-beyond-context", by_argv(_BUDGET, "600", words=("DDTREE", _BUDGET, "512 tokens"))
    yield "topk-beyond-vocabulary", by_argv(_TOPK, "513", words=("DDTREE", _TOPK, "512 tokens"))
    yield "block-size-one", by_argv("--speculative-dflash-block-size", "1", words=("DDTREE", "block size"))
    switch = "--speculative-ddtree-allow-hybrid-unsafe"
    words = ("DDTREE", "hybrid", "lightning", switch)
    yield "hybrid", by_argv(words=words, target=models.lightning)


def _of_backends(models: Models) -> Iterator[Check]:
    def by_argv(*flags: str, words: tuple[str, ...], target: str = "") -> Callable[[], str]:
        return lambda: refused(lambda: models.resolve(*flags, target=target), "DDTREE", *words)

    for name in ("fa3", "trtllm_mha", "flashmla", "torch_native", "aiter", "wave"):
        yield f"backend-{name}", by_argv(_BACKEND, name, words=(repr(name), "flashinfer or triton"))
    verifies = ("--speculative-attention-mode", "decode", "--decode-attention-backend", "fa3")
    yield "backend-of-decode", by_argv(*verifies, words=("'fa3'",))
    yield "flashinfer-with-mla", by_argv(_BACKEND, "flashinfer", words=("MLA", "triton"), target=models.mla)
    if not overlaps():
        yield "page-size-16", by_argv("--page-size", "16", words=("--page-size 1",))


def _of_parallelism(models: Models) -> Iterator[Check]:
    def by_argv(*flags: str, words: tuple[str, ...]) -> Callable[[], str]:
        return lambda: refused(lambda: models.resolve(*flags), "DDTREE", *words)

    yield "pipeline-parallel", by_argv("--pp-size", "2", words=("--pp-size 1",))
    dp = ("--enable-dp-attention", "--tp-size", "2", "--dp-size", "2")
    yield "dp-attention", by_argv(*dp, words=("--enable-dp-attention",))
    yield (
        "context-parallel",
        lambda: _each_of(
            ("--attn-cp-size", "--attention-context-parallel-size"),
            lambda flag: by_argv(flag, "2", "--tp-size", "2", words=("context parallelism",))(),
        ),
    )


def _of_features(models: Models) -> Iterator[Check]:
    """Flags that some release has, and sometimes as another name of a later one."""

    def refuse(flag: str, *others: str) -> str:
        last = flag.rpartition("-")[2]
        return refused(lambda: models.resolve(flag, *others), "DDTREE does not support", f"-{last}")

    yield "features", lambda: _each_of((*_ALWAYS, *(_WHERE_KV_MOVES if overlaps() else ())), refuse)
    if overlaps():
        yield "fp4-kv-cache", lambda: refuse("--kv-cache-dtype", _fp4())


def _each_of(flags: Iterable[str], refuse: Callable[[str], str]) -> str:
    """Of those that this release has. It is asked when the check runs: without torch the answer cannot be had."""
    known = options()
    found = [flag for flag in flags if flag in known]
    for flag in found:
        refuse(flag)
    return ", ".join(found) or "this release has none of them"


def _fp4() -> str:
    """What this release calls a KV cache of FP4."""
    return next(name for name in ("fp4_e2m1", "fp4_mx_block16") if name in kv_cache_types())
