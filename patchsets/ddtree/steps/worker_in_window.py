"""The branches of the worker that writes into slots which the scheduler reserved (from 0.5.14 on).

It grew with the releases: each variant is the one before it and what came since, told apart by that.
"""

from __future__ import annotations

from ddtree_patcher.codemods import Anchor, Codemod, InsertAfter, InsertBefore, InsertLast
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Contract, Refusal, Variant
from ddtree_patcher.shape import Defines, Holds, Lacks, Shape

from ..files import (
    DDTREE_CONFIG,
    DDTREE_START,
    DDTREE_WORKER,
    DFLASH_INFO,
    DFLASH_WORKER_V2,
    SPEC_INFO,
    fragments,
    indented,
)

_CODE = fragments("dflash_worker_v2.py")
_CLASS = "DFlashWorkerV2"
_INIT = f"{_CLASS}.__init__"
_FORWARD = f"{_CLASS}.forward_batch_generation"
_GREEDY = f"{_CLASS}._greedy_sample_from_vocab_parallel_head"
_BACKENDS = f"{_CLASS}.init_attention_backends"
_GRAPHS = f"{_CLASS}.init_cuda_graphs"
_SAMPLER = f"{_CLASS}._maybe_build_draft_sampler"
_DEFER = f"{_CLASS}._defer_target_verify_gather"


def _size(args: str) -> Anchor:
    """What is so where the user says how many tokens are drafted."""
    tokens = f"{args}.speculative_num_draft_tokens"
    return Anchor(f"self.block_size = int({tokens})", scope=_INIT, within=f"if {tokens} is None: ...")


_SIZE, _PUBLISHED_SIZE = _size("server_args"), _size("get_spec()")
_INPUT = Anchor("verify_input = DFlashVerifyInput(...)", scope=_FORWARD)
_GRAMMAR = Anchor("if batch.has_grammar: ...", scope=_FORWARD)
_CANDIDATES = Anchor("candidates = draft_tokens", scope=_FORWARD)
_LOGPROB = Anchor("if batch.return_logprob: ...", scope=_FORWARD)


def _after(anchor: Anchor, name: str) -> InsertAfter:
    return InsertAfter(DFLASH_WORKER_V2, anchor, _CODE.body(name))


def _before(anchor: Anchor, name: str) -> InsertBefore:
    return InsertBefore(DFLASH_WORKER_V2, anchor, _CODE.body(name))


# One edit a place, in the order of the file; where releases differ at a place, the name of the fragment says how.
_EDITS: dict[str, Codemod] = {
    "keep_algorithm": _after(Anchor("self.server_args = server_args", scope=_INIT), "keep_algorithm"),
    "block_size": _after(_SIZE, "block_size"),
    "published_block_size": _after(_PUBLISHED_SIZE, "published_block_size"),
    "all_logits": _before(Anchor("processors = ...", scope=_DEFER), "all_logits"),
    "narrow_attention": _after(
        Anchor("self._draft_worker.init_attention_backends()", scope=_BACKENDS), "narrow_attention"
    ),
    "start": InsertLast(DFLASH_WORKER_V2, _GRAPHS, _CODE.body("start")),
    "no_draft_sampler": _after(Anchor("def _eager(reason): ...", scope=_SAMPLER), "no_draft_sampler"),
    "best_chain": _after(Anchor("if hidden_states.numel() == 0: ...", scope=_GREEDY), "best_chain"),
    "verify_tree": _after(_INPUT, "verify_tree"),
    "verify_constrained_tree": _after(_INPUT, "verify_constrained_tree"),
    "adjust_logits": _after(Anchor("logits_output = target_out.logits_output", scope=_FORWARD), "adjust_logits"),
    "accept_tree": _before(_CANDIDATES, "accept_tree"),
    "accept_tree_of_worker_batch": _before(_CANDIDATES, "accept_tree_of_worker_batch"),
    "show_logits": _before(_LOGPROB, "show_logits"),
}
_EVERY = ("keep_algorithm", "narrow_attention", "start", "best_chain", "adjust_logits")
_PLAIN = (*_EVERY, "block_size", "verify_tree", "accept_tree_of_worker_batch")
_SAMPLING = (*_EVERY, "block_size", "no_draft_sampler", "verify_tree", "accept_tree")
_CONSTRAINED = (*_EVERY, "block_size", "no_draft_sampler", "verify_constrained_tree", "accept_tree")
_REPORTING = (*_CONSTRAINED, "show_logits")
_PUBLISHED = (*(name for name in _REPORTING if name != "block_size"), "published_block_size")
_DEFERRING = (*_PUBLISHED, "all_logits")

_SAMPLES = Defines(DFLASH_WORKER_V2, _SAMPLER)
_CONSTRAINS = Holds(DFLASH_WORKER_V2, _GRAMMAR)
_REPORTS = Holds(DFLASH_WORKER_V2, _LOGPROB)
_PUBLISHES = Holds(DFLASH_WORKER_V2, _PUBLISHED_SIZE)
_DEFERS = Defines(DFLASH_WORKER_V2, _DEFER)
_LATER = (_SAMPLES, _CONSTRAINS, _REPORTS, _PUBLISHES, _DEFERS)  # in the order in which they came

# Name → what it edits, and how many of the later features the release has.
_VARIANTS = {
    "overlap": (_PLAIN, 0),
    "overlap_draft_sampler": (_SAMPLING, 1),
    "overlap_grammar": (_CONSTRAINED, 2),
    "overlap_logprobs": (_REPORTING, 3),
    "overlap_published_arguments": (_PUBLISHED, 4),
    "overlap_deferred_logits": (_DEFERRING, 5),
}


def variants(no_older_worker: Shape) -> tuple[Variant, ...]:
    """From the oldest to the newest."""
    here = (Defines(DFLASH_WORKER_V2, _CLASS), no_older_worker)
    return tuple(
        Variant(
            name,
            when=(*here, *_LATER[:features], *(Lacks(feature) for feature in _LATER[features:])),
            edits=tuple(edit for key, edit in _EDITS.items() if key in edits),
            contract=_contract(features),
        )
        for name, (edits, features) in _VARIANTS.items()
    )


def _contract(features: int) -> tuple[Contract, ...]:
    names = ("SpeculativeAlgorithm", "DDTreeVerifyInput") + ("GrammarTree",) * (features > 1)
    names += ("get_spec",) * (features > 3)
    batch = "batch" if features else "model_worker_batch"
    return (
        *(Contract(DFLASH_WORKER_V2, name) for name in names),
        Contract(DFLASH_WORKER_V2, _INIT, ("self", "server_args")),
        Contract(DFLASH_WORKER_V2, _GREEDY, ("self", "hidden_states", "lm_head")),
        Contract(DFLASH_WORKER_V2, _FORWARD, ("self", batch)),
        Contract(DDTREE_CONFIG, "narrow_draft_attention", ("draft_runner", "block_size")),
        Contract(DDTREE_WORKER, "linearise_in_window", ("verify_input", "batch", "logits_output")),
        Contract(DFLASH_INFO, "DDTreeVerifyInput.prepare_for_verify", ("self", "batch", "target_worker")),
    )


# The worker of the cases, as a release with so many features has it: `<name>` is where that edit's code goes.
def _worker(features: int) -> str:
    batch = "batch" if features else "model_worker_batch"
    spec = "get_spec()" if features > 3 else "server_args"
    parts = [
        f"""\
from a import DDTreeVerifyInput, GrammarTree, SpeculativeAlgorithm, get_spec


class DFlashWorkerV2:
    def __init__(self, server_args):
        self.server_args = server_args
        <keep_algorithm>
        if {spec}.speculative_num_draft_tokens is None:
            self.block_size = 16
        else:
            self.block_size = int({spec}.speculative_num_draft_tokens)
            <{"published_block_size" if features > 3 else "block_size"}>

    def init_attention_backends(self):
        with draft_tp_context():
            self._draft_worker.init_attention_backends()
            <narrow_attention>

    def init_cuda_graphs(self):
        with draft_tp_context():
            self._draft_worker.init_cuda_graphs()
        <start>

    def _greedy_sample_from_vocab_parallel_head(self, *, hidden_states, lm_head):
        if hidden_states.numel() == 0:
            return None
        <best_chain>
        return lm_head.best(hidden_states)

    def forward_batch_generation(self, {batch}, on_publish=None):
        verify_input = DFlashVerifyInput(
            draft_token=None,
        )
        <{"verify_constrained_tree" if features > 1 else "verify_tree"}>
        sampling_info = {batch}.sampling_info
        logits_output = target_out.logits_output
        <adjust_logits>
"""
    ]
    if features > 1:
        parts.append("        if batch.has_grammar:\n            mask(grammar_tree)\n")
    accept = "accept_tree" if features else "accept_tree_of_worker_batch"
    parts.append(f"        <{accept}>\n        # Accept.\n        candidates = draft_tokens\n")
    if features > 2:
        parts.append("        <show_logits>\n        if batch.return_logprob:\n            compute(logits_output)\n")
    if features:
        parts.append("""
    def _maybe_build_draft_sampler(self):
        def _eager(reason):
            return None
        <no_draft_sampler>

        return _eager(1)
""")
    if features > 4:
        parts.append("""
    def _defer_target_verify_gather(self):
        <all_logits>
        processors = [module for module in self.modules()]
        return processors[0]
""")
    return "".join(parts)


def _filled(worker: str, *, patched: bool) -> str:
    lines = []
    for line in worker.splitlines(keepends=True):
        name = line.strip().removeprefix("<").removesuffix(">")
        if name not in _EDITS:
            lines.append(line)
        elif patched:
            lines.append(indented(_CODE.body(name), " " * (len(line) - len(line.lstrip()))))
    return "".join(lines)


_OTHERS = {
    SPEC_INFO: "class SpeculativeAlgorithm:\n    def from_string(cls, name): ...\n    def is_ddtree(self): ...\n",
    DDTREE_START: "def start_ddtree(worker, server_args, verify_input): ...\n",
    DDTREE_CONFIG: "def narrow_draft_attention(draft_runner, block_size): ...\n",
    DDTREE_WORKER: "def linearise_in_window(verify_input, batch, logits_output): ...\n",
    DFLASH_INFO: "class DDTreeVerifyInput:\n    def prepare_for_verify(self, batch, target_worker): ...\n",
}
_NEWEST = _filled(_worker(len(_LATER)), patched=False)

CASES = tuple(
    Case(
        name,
        {DFLASH_WORKER_V2: _filled(_worker(features), patched=False), **_OTHERS},
        {DFLASH_WORKER_V2: _filled(_worker(features), patched=True)},
    )
    for name, (_, features) in _VARIANTS.items()
)
REFUSALS = (
    Refusal(
        {DFLASH_WORKER_V2: _NEWEST.replace("verify_input = DFlash", "other_input = DFlash"), **_OTHERS},
        StepOutcome.ANCHOR_MISSING,
    ),
    Refusal(
        {DFLASH_WORKER_V2: _NEWEST.replace("candidates = draft_tokens", "candidates = draft_tokens\n        " * 2)},
        StepOutcome.PRECONDITION_FAILED,
    ),
    Refusal(
        {
            DFLASH_WORKER_V2: _NEWEST.replace(
                "candidates = draft_tokens\n", "candidates = draft_tokens\n        candidates = draft_tokens\n"
            ),
            **_OTHERS,
        },
        StepOutcome.ANCHOR_AMBIGUOUS,
    ),
    # A feature without one that came before it: no release is like that.
    Refusal(
        {DFLASH_WORKER_V2: _NEWEST.replace("if batch.has_grammar:", "if batch.grammar:"), **_OTHERS},
        StepOutcome.ANCHOR_MISSING,
    ),
    Refusal({DFLASH_WORKER_V2: _NEWEST, **_OTHERS, DDTREE_WORKER: "x = 1\n"}, StepOutcome.PRECONDITION_FAILED),
)
