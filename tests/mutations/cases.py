"""What upstream may do to the places that the steps change, on real releases, and what has to become of it."""

from __future__ import annotations

from dataclasses import dataclass

from mutations.edits import (
    Change,
    both,
    duplicate,
    duplicate_definition,
    insert,
    move_behind,
    move_file,
    move_to_file,
    reformat,
    rename,
    rename_inside,
    replace,
    tabs,
    windows,
    wrap,
)

APPLIED = "applied"

ARGS = "server_args.py"
FIELDS = "arg_groups/fields/spec.py"
HOOK = "arg_groups/speculative_hook.py"
PIPELINE = "arg_groups/pipeline.py"
INFO = "speculative/spec_info.py"
INPUT = "speculative/dflash_info.py"
WORKER = "speculative/dflash_worker.py"
WORKER_V2 = "speculative/dflash_worker_v2.py"
UTILS = "speculative/spec_utils.py"
SCHEDULER = "managers/scheduler.py"
METRICS = "managers/scheduler_components/metrics_reporter.py"
POOL = "mem_cache/memory_pool.py"
SIZING = "mem_cache/allocation_sizing.py"
CONFIGURATOR = "mem_cache/kv_cache_configurator.py"
HYBRID = "layers/attention/hybrid_linear_attn_backend.py"
RUNNER = "model_executor/runner/decode_cuda_graph_runner.py"

KEEP = "self.server_args = server_args"
POLICY = "_, build_custom_mask = resolve_dflash_verify_mask_policy("
_CLASS = "class SpeculativeAlgorithm(Enum):"
_PREDICATE = "    def is_dflash(self) -> bool:\n        return self == SpeculativeAlgorithm.DFLASH\n"
_ASKED = "server_args.speculative_algorithm"
_HEADROOM = "def get_req_to_token_extra_context_len() -> int:\n"


@dataclass(frozen=True)
class Mutation:
    """``expected`` is ``applied`` or the word of a refusal, which must then name the place: a line that reads ``at``,
    or any line of the definition ``inside``, in ``path`` (``found_in`` where the code went to another file)."""

    id: str
    release: str
    path: str
    change: Change
    expected: str = APPLIED
    at: str = ""
    inside: str = ""
    found_in: str = ""

    @property
    def where(self) -> str:
        return self.found_in or self.path


def applied(release: str, id: str, path: str, change: Change) -> Mutation:
    return Mutation(f"{release}: {id}", release, path, change)


def refused(release: str, id: str, path: str, change: Change, word: str, at: str = "", **more: str) -> Mutation:
    return Mutation(f"{release}: {id}", release, path, change, word, at, **more)


_MISSING, _AMBIGUOUS, _HALF, _BROKEN = "anchor_missing", "anchor_ambiguous", "half_upstreamed", "precondition_failed"

_FIRST = "0.5.11"  # the worker that allocates in the step
OF_FIRST = (
    applied(_FIRST, "enum members reordered", INFO, move_behind(INFO, "DFLASH = auto()", "NGRAM = auto()")),
    applied(_FIRST, "worker reformatted by black", WORKER, reformat(WORKER, 60)),
    applied(
        _FIRST,
        "other quotes",
        ARGS,
        replace(ARGS, 'if self.speculative_algorithm == "DFLASH":', "if self.speculative_algorithm == 'DFLASH':"),
    ),
    applied(_FIRST, "scheduler with CRLF", SCHEDULER, windows(SCHEDULER)),
    applied(
        _FIRST,
        "choices reordered",
        ARGS,
        replace(ARGS, '["DFLASH", "EAGLE", "EAGLE3", ', '["EAGLE3", "EAGLE", "DFLASH", '),
    ),
    applied(
        _FIRST,
        "comments between the statements",
        WORKER,
        both(
            insert(WORKER, KEEP, "# The arguments of the target.\n# And of the drafter."),
            insert(WORKER, KEEP, "# Kept above.", after=True),
        ),
    ),
    refused(
        _FIRST,
        "attribute renamed",
        WORKER,
        replace(WORKER, KEEP, "self.target_args = server_args"),
        _MISSING,
        "self.target_args = server_args",
    ),
    refused(
        _FIRST,
        "parameter of the constructor renamed",
        WORKER,
        rename_inside(WORKER, "DFlashWorker.__init__", "server_args", "target_args"),
        _BROKEN,
        "def __init__(",
    ),
    refused(
        _FIRST,
        "parameter added without a default",
        INPUT,
        replace(
            INPUT,
            "    def prepare_for_verify(\n        self,\n        batch: ScheduleBatch,\n",
            "    def prepare_for_verify(\n        self,\n        batch: ScheduleBatch,\n        stream,\n",
        ),
        _BROKEN,
        "def prepare_for_verify(",
    ),
    refused(
        _FIRST,
        "branch narrowed",
        SCHEDULER,
        replace(
            SCHEDULER,
            "        if self.spec_algorithm.is_dflash():\n            error_msg",
            "        if self.spec_algorithm.is_dflash() and self.enable_overlap:\n            error_msg",
        ),
        _MISSING,
        "error_msg = validate_dflash_request(req)",
    ),
    refused(
        _FIRST, "statement wrapped in if", WORKER, wrap(WORKER, KEEP, "if server_args is not None:"), _MISSING, KEEP
    ),
    refused(
        _FIRST,
        "statement wrapped in try",
        WORKER,
        wrap(WORKER, "draft_server_args = deepcopy(server_args)", "try:", "finally:\n            pass"),
        _MISSING,
        "draft_server_args = deepcopy(server_args)",
    ),
    refused(
        _FIRST,
        "statement duplicated",
        WORKER,
        duplicate(WORKER, "draft_server_args = deepcopy(server_args)"),
        _AMBIGUOUS,
        "draft_server_args = deepcopy(server_args)",
    ),
    refused(
        _FIRST,
        "statements reordered",
        WORKER,
        move_behind(WORKER, KEEP, "draft_server_args = deepcopy(server_args)"),
        _MISSING,
        "draft_server_args = deepcopy(server_args)",
    ),
    refused(
        _FIRST,
        "enum member is there already",
        INFO,
        insert(INFO, "DFLASH = auto()", 'DDTREE = "DDTREE"', after=True),
        _HALF,
        'DDTREE = "DDTREE"',
    ),
    refused(
        _FIRST,
        "enum of strings",
        INFO,
        replace(INFO, "    DFLASH = auto()\n", '    DFLASH = "dflash"\n'),
        _MISSING,
        'DFLASH = "dflash"',
    ),
    refused(
        _FIRST,
        "parameter renamed",
        INPUT,
        rename_inside(INPUT, "DFlashVerifyInput.verify", "logits_output", "target_logits"),
        _BROKEN,
        "def verify(",
    ),
    refused(
        _FIRST,
        "predicate in a mixin",
        INFO,
        both(
            replace(INFO, _PREDICATE + "\n", ""),
            replace(INFO, _CLASS, f"class _Families:\n{_PREDICATE}\n\nclass SpeculativeAlgorithm(_Families, Enum):"),
        ),
        _MISSING,
        inside="_Families.is_dflash",
    ),
    refused(
        _FIRST,
        "choices in a constant",
        ARGS,
        replace(
            ARGS,
            'choices=["DFLASH", "EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM"],',
            "choices=SPECULATIVE_CHOICES,",
        ),
        _MISSING,
        inside="ServerArgs.add_cli_args",
    ),
)

_HOOKED = "0.5.13.post1"  # the handling of arguments in a hook
OF_HOOKED = (
    applied(_HOOKED, "enum reformatted by black", INFO, reformat(INFO, 50)),
    applied(
        _HOOKED,
        "docstring added",
        INFO,
        replace(
            INFO,
            "    def is_dflash(self) -> bool:\n",
            '    def is_dflash(self) -> bool:\n        """Whether blocks are drafted."""\n',
        ),
    ),
    applied(_HOOKED, "hook with tabs", HOOK, tabs(HOOK)),
    refused(
        _HOOKED,
        "hook renamed",
        HOOK,
        rename(HOOK, "handle_speculative_decoding", "handle_speculation"),
        _MISSING,
        "def handle_speculation(",
    ),
    refused(
        _HOOKED,
        "hook moved to another file",
        HOOK,
        move_to_file(
            HOOK,
            "handle_speculative_decoding",
            "arg_groups/speculation.py",
            "from sglang.srt.arg_groups.speculative_hook import *",
        ),
        _MISSING,
        inside="handle_speculative_decoding",
        found_in="arg_groups/speculation.py",
    ),
    refused(
        _HOOKED,
        "elif chain to a table",
        HOOK,
        replace(
            HOOK,
            f'    if {_ASKED} == "DFLASH":\n        _handle_dflash(server_args)\n    elif',
            f'    if handler := {{"DFLASH": _handle_dflash}}.get({_ASKED}):\n        handler(server_args)\n    elif',
        ),
        _MISSING,
        inside="handle_speculative_decoding",
    ),
    refused(
        _HOOKED,
        "handler with another signature",
        HOOK,
        rename_inside(HOOK, "_handle_dflash", "server_args", "args"),
        _BROKEN,
        "def _handle_dflash(",
    ),
    refused(
        _HOOKED,
        "positional to keyword",
        SCHEDULER,
        replace(SCHEDULER, "error_msg = validate_dflash_request(req)", "error_msg = validate_dflash_request(req=req)"),
        _MISSING,
        "error_msg = validate_dflash_request(req=req)",
    ),
    refused(
        _HOOKED,
        "method of the hybrid backend renamed",
        HYBRID,
        rename(HYBRID, "_execute_deferred_mamba_cow_and_clear", "_run_deferred_mamba_cow_and_clear"),
        _MISSING,
        "def _run_deferred_mamba_cow_and_clear(",
    ),
)

_OVERLAP = "0.5.14"  # the first worker that overlaps
OF_OVERLAP = (
    applied(
        _OVERLAP,
        "decorator added",
        UTILS,
        insert(
            UTILS, "def spec_need_hidden_states(server_args: Optional[ServerArgs] = None) -> bool:", "@torch.no_grad()"
        ),
    ),
    applied(
        _OVERLAP,
        "field moved within its class",
        ARGS,
        move_behind(ARGS, "speculative_dflash_block_size: A[", "speculative_draft_window_size: A["),
    ),
    applied(_OVERLAP, "pool reformatted by black", POOL, reformat(POOL, 100)),
    refused(
        _OVERLAP,
        "function renamed",
        POOL,
        rename(POOL, "conv_window_dedup_enabled", "conv_windows_overlap"),
        _MISSING,
        "def conv_windows_overlap(",
    ),
    refused(
        _OVERLAP,
        "function duplicated",
        POOL,
        duplicate_definition(POOL, "conv_window_dedup_enabled"),
        _AMBIGUOUS,
        "def conv_window_dedup_enabled(",
    ),
    refused(
        _OVERLAP,
        "early return in a short function",
        POOL,
        replace(
            POOL,
            "    return (\n        not is_npu\n",
            "    if is_cpu:\n        return False\n    return (\n        not is_npu\n",
        ),
        _AMBIGUOUS,
        inside="conv_window_dedup_enabled",
    ),
    refused(
        _OVERLAP,
        "early return before the end",
        WORKER_V2,
        insert(
            WORKER_V2,
            "capture_decode_cuda_graph = not self.server_args.disable_cuda_graph",
            "if not is_cuda():\n    return",
        ),
        _MISSING,
        "return",
    ),
    refused(
        _OVERLAP,
        "walrus",
        UTILS,
        replace(
            UTILS,
            "if server_args.speculative_algorithm in (",
            "if (algorithm := server_args.speculative_algorithm) in (",
        ),
        _MISSING,
        inside="spec_need_hidden_states",
    ),
    refused(
        _OVERLAP,
        "import as another name",
        WORKER_V2,
        both(
            replace(WORKER_V2, "import DFlashVerifyInput\n", "import DFlashVerifyInput as VerifyInput\n"),
            replace(WORKER_V2, "verify_input = DFlashVerifyInput(", "verify_input = VerifyInput("),
        ),
        _MISSING,
        "verify_input = VerifyInput(",
    ),
    refused(
        _OVERLAP,
        "import of the module",
        WORKER_V2,
        replace(
            WORKER_V2,
            "from sglang.srt.speculative.dflash_info import DFlashVerifyInput\n",
            "import sglang.srt.speculative.dflash_info as info\n\nDFlashVerifyInput = info.DFlashVerifyInput\n",
        ),
        _MISSING,
        "import sglang.srt.speculative.dflash_info as info",
    ),
)

_NAMESPACE = "0.5.18"  # arguments in namespaces, log-probabilities
OF_NAMESPACE = (
    applied(_NAMESPACE, "worker with CRLF", WORKER_V2, windows(WORKER_V2)),
    applied(_NAMESPACE, "worker reformatted by black", WORKER_V2, reformat(WORKER_V2, 120)),
    applied(
        _NAMESPACE,
        "statement in a with",
        WORKER_V2,
        wrap(WORKER_V2, "candidates = draft_tokens", "with torch.no_grad():"),
    ),
    applied(
        _NAMESPACE,
        "help text changed",
        ARGS,
        replace(ARGS, "DFLASH only. Block size (verify window length).", "Block size of DFLASH: the verify window."),
    ),
    refused(
        _NAMESPACE,
        "condition of a feature changed",
        WORKER_V2,
        replace(
            WORKER_V2,
            "        if batch.return_logprob:\n            compute",
            "        if batch.return_logprob and not is_idle:\n            compute",
        ),
        _MISSING,
        "if batch.return_logprob and not is_idle:",
    ),
    refused(
        _NAMESPACE,
        "grammar asked of another object",
        WORKER_V2,
        replace(WORKER_V2, "        if batch.has_grammar:\n", "        if sampling_info.has_grammar:\n"),
        _MISSING,
        "if sampling_info.has_grammar:",
    ),
    refused(
        _NAMESPACE,
        "split in two functions",
        SIZING,
        replace(
            SIZING, _HEADROOM, f"{_HEADROOM}    return _extra_context_len()\n\n\ndef _extra_context_len() -> int:\n"
        ),
        _MISSING,
        inside="_extra_context_len",
    ),
    refused(
        _NAMESPACE,
        "file moved",
        SIZING,
        move_file(SIZING, "mem_cache/sizing.py"),
        "file_missing",
        inside="get_req_to_token_extra_context_len",
        found_in="mem_cache/sizing.py",
    ),
    refused(
        _NAMESPACE,
        "another default",
        ARGS,
        replace(
            ARGS,
            'Alias of --speculative-num-draft-tokens for DFLASH.",\n        NS("spec"),\n    ] = None',
            'Alias of --speculative-num-draft-tokens for DFLASH.",\n        NS("spec"),\n    ] = 16',
        ),
        _MISSING,
        "speculative_dflash_block_size: A[",
    ),
    refused(
        _NAMESPACE,
        "another annotation",
        ARGS,
        replace(
            ARGS,
            "    speculative_dflash_block_size: A[\n        Optional[int],",
            "    speculative_dflash_block_size: A[\n        int | None,",
        ),
        _MISSING,
        "speculative_dflash_block_size: A[",
    ),
    refused(
        _NAMESPACE,
        "half put in by hand",
        INPUT,
        lambda files: files.put(
            INPUT, files.text(INPUT) + "\n\nclass DDTreeVerifyInput(DFlashVerifyInput):\n    pass\n"
        ),
        _HALF,
        "class DDTreeVerifyInput(DFlashVerifyInput):",
    ),
    refused(
        _NAMESPACE,
        "statement removed",
        WORKER_V2,
        replace(WORKER_V2, "        candidates = draft_tokens\n", "        pass\n"),
        _MISSING,
        inside="DFlashWorkerV2.forward_batch_generation",
    ),
    refused(
        _NAMESPACE,
        "width hook renamed",
        INFO,
        rename(INFO, "get_num_tokens_per_req_for_target_verify", "tokens_of_target_verify"),
        _MISSING,
        "def tokens_of_target_verify(",
    ),
)

_NEWEST = "0.5.23"
OF_NEWEST = (
    applied(
        _NEWEST,
        "tuple reordered",
        METRICS,
        replace(
            METRICS,
            "    SpeculativeAlgorithm.DFLASH,\n    SpeculativeAlgorithm.DSPARK,\n)\nENABLE",
            "    SpeculativeAlgorithm.DSPARK,\n    SpeculativeAlgorithm.DFLASH,\n)\nENABLE",
        ),
    ),
    applied(_NEWEST, "fields reformatted by black", FIELDS, reformat(FIELDS, 70)),
    applied(_NEWEST, "scheduler reformatted by black", SCHEDULER, reformat(SCHEDULER, 100)),
    refused(
        _NEWEST,
        "constant renamed",
        METRICS,
        rename(METRICS, "_SPEC_DECODE_SNAPSHOT_ALGORITHMS", "_SNAPSHOT_ALGORITHMS"),
        "unknown_literal",
        "SpeculativeAlgorithm.DFLASH,",
    ),
    refused(
        _NEWEST,
        "one hook to a list of hooks",
        PIPELINE,
        replace(
            PIPELINE,
            "    run_hook(handle_hpu_backends, server_args)\n",
            "    for hook in (handle_hpu_backends,):\n        run_hook(hook, server_args)\n",
        ),
        _MISSING,
        inside="run_resolution_pipeline",
    ),
    refused(
        _NEWEST,
        "method renamed",
        SCHEDULER,
        rename(SCHEDULER, "_handle_generate_request", "_take_generate_request"),
        _MISSING,
        "def _take_generate_request(",
    ),
    refused(
        _NEWEST,
        "parameter of the sampler renamed",
        WORKER_V2,
        rename_inside(WORKER_V2, "DFlashWorkerV2._greedy_sample_from_vocab_parallel_head", "hidden_states", "hidden"),
        _BROKEN,
        "def _greedy_sample_from_vocab_parallel_head(",
    ),
    refused(
        _NEWEST,
        "call under one more condition",
        CONFIGURATOR,
        wrap(CONFIGURATOR, "rest_memory = self._handle_max_mamba_cache(rest_memory)", "if rest_memory > 0:"),
        _MISSING,
        "rest_memory = self._handle_max_mamba_cache(rest_memory)",
    ),
    refused(_NEWEST, "mask policy in a loop", RUNNER, wrap(RUNNER, POLICY, "for _ in range(1):"), _MISSING, POLICY),
    refused(
        _NEWEST,
        "processors renamed",
        WORKER_V2,
        rename_inside(WORKER_V2, "DFlashWorkerV2._defer_target_verify_gather", "processors", "heads"),
        _MISSING,
        inside="DFlashWorkerV2._defer_target_verify_gather",
    ),
)

MUTATIONS = (*OF_FIRST, *OF_HOOKED, *OF_OVERLAP, *OF_NAMESPACE, *OF_NEWEST)
RELEASES = tuple(dict.fromkeys(item.release for item in MUTATIONS))
