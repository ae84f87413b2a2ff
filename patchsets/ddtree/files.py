"""The files of SGLang that the steps speak of, and the code that they bring."""

from __future__ import annotations

from pathlib import Path

from ddtree_patcher.codemods import Fragments

SERVER_ARGS = "sglang/srt/server_args.py"
SPECULATIVE_HOOK = "sglang/srt/arg_groups/speculative_hook.py"
SPEC_FIELDS = "sglang/srt/arg_groups/fields/spec.py"
PIPELINE = "sglang/srt/arg_groups/pipeline.py"
OVERRIDES = "sglang/srt/arg_groups/overrides.py"
RUNTIME_CONTEXT = "sglang/srt/runtime_context.py"
SCHEDULER = "sglang/srt/managers/scheduler.py"
DECODE_GRAPH_RUNNER = "sglang/srt/model_executor/runner/decode_cuda_graph_runner.py"
CUDA_GRAPH_RUNNER = "sglang/srt/model_executor/cuda_graph_runner.py"
FORWARD_BATCH_INFO = "sglang/srt/model_executor/forward_batch_info.py"
LOGITS_PROCESSOR = "sglang/srt/layers/logits_processor.py"
SAMPLER = "sglang/srt/layers/sampler.py"
HYBRID_BACKEND = "sglang/srt/layers/attention/hybrid_linear_attn_backend.py"
KV_CACHE_MIXIN = "sglang/srt/model_executor/model_runner_kv_cache_mixin.py"
KV_CACHE_CONFIGURATOR = "sglang/srt/mem_cache/kv_cache_configurator.py"
MEMORY_POOL = "sglang/srt/mem_cache/memory_pool.py"
SPEC_INFO = "sglang/srt/speculative/spec_info.py"
SPEC_REGISTRY = "sglang/srt/speculative/spec_registry.py"
SPEC_UTILS = "sglang/srt/speculative/spec_utils.py"
METRICS_REPORTER = "sglang/srt/managers/scheduler_components/metrics_reporter.py"
MEM_CACHE_COMMON = "sglang/srt/mem_cache/common.py"
ALLOCATION_SIZING = "sglang/srt/mem_cache/allocation_sizing.py"
DFLASH_INFO = "sglang/srt/speculative/dflash_info.py"
DFLASH_WORKER = "sglang/srt/speculative/dflash_worker.py"
DFLASH_WORKER_V2 = "sglang/srt/speculative/dflash_worker_v2.py"
DDTREE_ARGS = "sglang/srt/speculative/ddtree_args.py"
DDTREE_FAMILIES = "sglang/srt/speculative/ddtree_families.py"
DDTREE_RECURRENT = "sglang/srt/speculative/ddtree_recurrent.py"
DDTREE_ROOM = "sglang/srt/speculative/ddtree_room.py"
DDTREE_REFUSALS = "sglang/srt/speculative/ddtree_refusals.py"
DDTREE_RESOLUTION = "sglang/srt/speculative/ddtree_resolution.py"
DDTREE_TREE = "sglang/srt/speculative/ddtree_tree.py"
DDTREE_CONFIG = "sglang/srt/speculative/ddtree_config.py"
DDTREE_CANDIDATES = "sglang/srt/speculative/ddtree_candidates.py"
DDTREE_INPUT = "sglang/srt/speculative/ddtree_input.py"
DDTREE_PATCHSET = "sglang/srt/speculative/ddtree_patchset.py"
DDTREE_STATS = "sglang/srt/speculative/ddtree_stats.py"
DDTREE_WORKER = "sglang/srt/speculative/ddtree_worker.py"
DDTREE_SELFCHECK = "sglang/srt/speculative/ddtree_selfcheck.py"
DDTREE_START = "sglang/srt/speculative/ddtree_start.py"

_HERE = Path(__file__).parent


def fragments(name: str) -> Fragments:
    """The definitions of one file under ``fragments/``."""
    return Fragments.load(_HERE / "fragments" / name)


def runtime(name: str) -> bytes:
    """The content of a module that is added, with ``\\n`` newlines however it was checked out."""
    return (_HERE / "runtime" / name).read_bytes().replace(b"\r\n", b"\n")


def indented(code: str, margin: str) -> str:
    """Code as it lies in a body, for the texts of a step's cases."""
    return "".join(f"{margin}{line}" if line.strip() else line for line in code.splitlines(keepends=True))
