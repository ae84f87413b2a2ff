"""Every place where SGLang asks for DFLASH by name, from 0.5.11 to 0.5.23, and what DDTREE does about it.

`is_dflash()` and what is built on it serve DDTREE by the step `enum`; these places compare the name itself, so each was
looked at. A place that is not here is an alarm: the next release may bring one that takes a tree for a chain.
`SpecInputType.DFLASH_VERIFY` is watched too, as it is the type of a tree's verify input.
"""

from __future__ import annotations

from ddtree_patcher.sentinels import Ruling, Sentinels, Verdict

from .files import DFLASH_INFO, DFLASH_WORKER, SERVER_ARGS, SPEC_INFO, SPEC_REGISTRY, SPECULATIVE_HOOK

_SRT = "sglang/srt"
_HOOKS = f"{_SRT}/arg_groups"
_KV_CACHE_HOOK = f"{_HOOKS}/kv_cache_hook.py"
_MINIMAX = f"{_HOOKS}/model_overrides/minimax_m3.py"
_MLA = f"{_SRT}/layers/attention/flashinfer_mla_backend.py"
_WORKER_V2 = f"{_SRT}/speculative/dflash_worker_v2.py"

_BACKEND_DRAFTS = "It asks for the drafter's attention backend, and DDTREE drafts as DFLASH does."
_REPLAY = "Replay-SSM verifies with a strictly causal kernel; DDTREE refuses it at start-up."
_TYPE = "A tree's verify input is a DFLASH_VERIFY: it plans its attention with a mask, as the type leads it to."
_NO_TREE = "This backend applies no tree mask, so DDTREE refuses it at start-up."
_UNIFIED = "A tree moves accepted tokens one at a time, which the unified pool cannot."
_DRAFT_BLOCK = "The drafter's own forward is DFLASH's block, whatever is verified afterwards."


def _extended(path: str, scope: str, use: str, why: str) -> Verdict:
    return Verdict(path, scope, use, Ruling.EXTENDED, why)


def _left(path: str, scope: str, use: str, why: str, places: int = 1) -> Verdict:
    return Verdict(path, scope, use, Ruling.LEFT, why, places)


def _refused(path: str, scope: str, use: str, why: str, places: int = 1) -> Verdict:
    return Verdict(path, scope, use, Ruling.REFUSED, why, places)


_ALGORITHM = (
    _extended(
        SPEC_INFO,
        "SpeculativeAlgorithm.is_dflash",
        "self == SpeculativeAlgorithm.DFLASH",
        "DDTREE counts as DFLASH family wherever the predicate is asked.",
    ),
    _refused(
        SPEC_INFO,
        "SpeculativeAlgorithm.supports_mixed_chunk",
        "self in (SpeculativeAlgorithm.EAGLE, SpeculativeAlgorithm.EAGLE3, SpeculativeAlgorithm.DFLASH, "
        "SpeculativeAlgorithm.DSPARK)",
        "Prefill mixed into a verify step was never tried with a tree.",
    ),
    _left(SPEC_INFO, "SpecInput.is_verify_input", "self.spec_input_type in ...", _TYPE),
    _extended(SPEC_REGISTRY, "", "frozenset(...)", "A plug-in must not take the name DDTREE."),
)

_ARGUMENTS = (
    _extended(
        SERVER_ARGS,
        "ServerArgs.add_cli_args",
        'parser.add_argument("--speculative-algorithm", ..., choices=...)',
        "The command line takes only the names in this list.",
    ),
    _extended(
        SERVER_ARGS,
        "ServerArgs._handle_speculative_decoding",
        'self.speculative_algorithm == "DFLASH"',
        "It is the only gate to DFLASH's checks and defaults.",
    ),
    _extended(
        SPECULATIVE_HOOK,
        "handle_speculative_decoding",
        'server_args.speculative_algorithm == "DFLASH"',
        "It is the only gate to DFLASH's checks and defaults.",
    ),
    _extended(
        SPECULATIVE_HOOK,
        "handle_speculative_decoding",
        '(...).speculative_algorithm not in ("EAGLE3", "DFLASH")',
        "DDTREE honours the draft window, and must not be warned that it does not.",
    ),
    _extended(
        SPECULATIVE_HOOK,
        "handle_speculative_decoding",
        'cfg.speculative_algorithm not in ("EAGLE", "EAGLE3", "DFLASH")',
        "DDTREE honours the draft window, and must not be warned that it does not.",
    ),
    _refused(
        SPECULATIVE_HOOK,
        "handle_speculative_decoding",
        'cfg.speculative_algorithm not in ("EAGLE", "EAGLE3", "DFLASH", "DSPARK")',
        "Block verification judges a chain as a whole.",
    ),
    _left(SPECULATIVE_HOOK, "_handle_dflash", 'algorithm = "DFLASH"', "It is what DFLASH's own messages say."),
    _left(
        SPECULATIVE_HOOK,
        "_resolve_dflash_draft_attention_backend.get_fallback_backend",
        'current_platform.get_default_speculative_draft_attention_backend("DFLASH")',
        _BACKEND_DRAFTS,
    ),
    _left(
        SPECULATIVE_HOOK,
        "_resolve_dflash_draft_attention_backend.is_supported_backend",
        'current_platform.supports_speculative_draft_attention_backend("DFLASH", backend)',
        _BACKEND_DRAFTS,
    ),
    _extended(
        SERVER_ARGS,
        "ServerArgs._validate_mamba_extra_buffer",
        'algo != "DFLASH"',
        "DFLASH's verify, which DDTREE's ends in, bypasses the hook of the lazy extra buffer.",
    ),
    _refused(SERVER_ARGS, "ServerArgs._handle_linear_attn_backend", '_algo not in ("DSPARK", "DFLASH")', _REPLAY),
    _refused(f"{_HOOKS}/attention_hook.py", "handle_linear_attn_backend", '_algo not in ("DSPARK", "DFLASH")', _REPLAY),
    _left(
        f"{_HOOKS}/model_override_base.py",
        "_forces_eagle_topk_one",
        "str(speculative_algorithm).upper() == SpeculativeAlgorithm.DFLASH.name",
        "It would make trtllm_mha, which applies no tree mask, the default on Blackwell. Never extend it.",
    ),
    _refused(
        f"{_HOOKS}/lora_hook.py",
        "check_lora_speculative_compatibility",
        'lora_spec_algorithms = ("EAGLE", "EAGLE3", "DFLASH", "DSPARK")',
        "Adapters were never tried with the width of a tree.",
    ),
    _refused(
        f"{_HOOKS}/cp_tp_group_sharing_hook.py",
        "resolve_cp_tp_group_sharing",
        'cfg.speculative_algorithm != "DFLASH"',
        "Shared context- and tensor-parallel groups were ported for a chain alone.",
        places=2,
    ),
    _refused(
        f"{_HOOKS}/layernorm_sp_hook.py",
        "validate_layernorm_sp",
        'speculative_algorithm == "DFLASH"',
        "Sequence-sharded hidden states are gathered for DFLASH's chain alone.",
    ),
    _refused(
        f"{_HOOKS}/validation_hook.py",
        "",
        '_AUX_HIDDEN_STATE_CAPTURE_METHODS = ("EAGLE3", "DFLASH", "DSPARK")',
        "It names a convention of capturing, without a draft model: DFLASH's is to be named as such.",
    ),
)

_POOLS = (
    _refused(
        _KV_CACHE_HOOK,
        "handle_kv4_compatibility",
        'speculative_algorithm in ("DFLASH", "DSPARK")',
        "DFLASH's writer cannot write this layout; the lines below refuse DDTREE too, which they do not list.",
    ),
    _refused(
        _KV_CACHE_HOOK,
        "handle_unified_memory_pool",
        'cfg.speculative_algorithm in (None, "DSPARK", "EAGLE", "EAGLE3", "DFLASH")',
        _UNIFIED,
    ),
    _left(
        _KV_CACHE_HOOK,
        "handle_unified_memory_pool",
        'cfg.speculative_algorithm == "DFLASH"',
        "DDTREE is refused a few lines above.",
    ),
    _left(
        _KV_CACHE_HOOK,
        "handle_unified_memory_pool",
        '_assert_spec_verify_backends(server_args, algorithm="DFLASH", allowed=...)',
        "DDTREE is refused a few lines above.",
    ),
    _left(
        f"{_SRT}/mem_cache/kv_cache_configurator.py",
        "KVCacheConfigurator._build_hybrid_req_pool",
        '_algo in ("DSPARK", "DFLASH")',
        _REPLAY,
    ),
)

_MODELS = (
    _left(
        f"{_HOOKS}/model_overrides/nemotron_h.py",
        "_nemotron_h_overrides",
        'speculative_algorithm in ("EAGLE", "NEXTN", "DFLASH", "DSPARK")',
        "A preference for the drafter's backend; DFLASH's handling, which comes later, chooses one for DDTREE.",
    ),
    _refused(
        _MINIMAX,
        "_minimax_m3_overrides",
        'cfg.speculative_algorithm not in (None, "DSPARK", "DFLASH")',
        "Its sparse attention verifies a chain alone.",
    ),
    _left(
        _MINIMAX,
        "_minimax_m3_overrides",
        'cfg.speculative_algorithm in ("DSPARK", "DFLASH")',
        "DDTREE is refused a line above.",
    ),
    _left(_MINIMAX, "_minimax_m3_overrides", 'algorithm == "DFLASH"', "DDTREE is refused a few lines above."),
)

_SERVING = (
    _extended(
        f"{_SRT}/speculative/spec_utils.py",
        "spec_need_hidden_states",
        "(...).speculative_algorithm in ...",
        "Without it the overlap scheduler relays hidden states of width zero.",
    ),
    _extended(
        f"{_SRT}/managers/scheduler_components/metrics_reporter.py",
        "",
        "_SPEC_DECODE_SNAPSHOT_ALGORITHMS = ...",
        "Overlapped steps add tokens before they are reported, whatever the drafts' shape is.",
    ),
    _left(
        f"{_SRT}/disaggregation/mooncake/conn.py",
        "MooncakeKVManager._validate_peer_state_layout",
        'get_spec().speculative_algorithm == "DFLASH"',
        "It matters where context- and tensor-parallel groups are shared, which DDTREE is refused.",
    ),
)

_VERIFY_INPUT = (
    _left(
        DFLASH_INFO,
        "DFlashVerifyInput.__post_init__",
        "super().__init__(spec_input_type=SpecInputType.DFLASH_VERIFY)",
        "It gives a tree's verify input, a subclass, its type.",
    ),
    _left(
        f"{_SRT}/layers/attention/flashinfer_backend.py",
        "FlashInferIndicesUpdaterPrefill.call_begin_forward",
        "spec_info.spec_input_type == SpecInputType.DFLASH_VERIFY",
        _TYPE,
    ),
    _left(
        f"{_SRT}/layers/attention/flashinfer_backend.py",
        "FlashInferAttnBackend.init_forward_metadata_out_graph",
        "spec_info.spec_input_type == SpecInputType.DFLASH_VERIFY",
        "The fast plan is installed only where there is no mask, and a tree has one.",
    ),
    *(
        _left(
            _MLA,
            f"FlashInferMLAAttnBackend.{method}",
            "spec_info.spec_input_type != SpecInputType.DFLASH_VERIFY",
            _NO_TREE,
        )
        for method in (
            "init_forward_metadata_out_graph",
            "_apply_cuda_graph_metadata",
            "_build_fast_verify_plan_kwargs",
        )
    ),
    _left(
        f"{_SRT}/hardware_backend/npu/attention/ascend_backend.py",
        "_is_dflash_verify",
        "spec_info.spec_input_type == SpecInputType.DFLASH_VERIFY",
        _NO_TREE,
    ),
)

_DRAFTER = (
    _left(
        DFLASH_WORKER,
        "DFlashWorker._prepare_for_speculative_decoding",
        "ForwardBatch(..., spec_algorithm=SpeculativeAlgorithm.DFLASH)",
        _DRAFT_BLOCK,
    ),
    _left(
        _WORKER_V2,
        "DFlashWorkerV2.forward_batch_generation",
        "ForwardBatch(..., spec_algorithm=SpeculativeAlgorithm.DFLASH)",
        _DRAFT_BLOCK,
    ),
    _left(
        _WORKER_V2,
        "DFlashWorkerV2.__init__",
        'build_draft_tp_worker(..., algo_label="DFLASH")',
        "A label in log lines about the drafter.",
    ),
)

SENTINELS = Sentinels(
    strings=("DFLASH",),
    attributes=("DFLASH", "DFLASH_VERIFY"),
    verdicts=(*_ALGORITHM, *_ARGUMENTS, *_POOLS, *_MODELS, *_SERVING, *_VERIFY_INPUT, *_DRAFTER),
    own=("DDTREE",),
    elsewhere=("sglang/test/",),  # SGLang's own test utilities, which no server imports
)
