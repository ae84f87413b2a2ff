"""What the patched modules hold: the algorithm, the worker and its parts, graphs, requests, the registry."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

from .expect import expect, raises, refused
from .models import overlaps

# Where DDTREE answers other than DFLASH: it is itself, and mixing prefill into its steps was never tried.
_OWN_ANSWERS = {"is_ddtree", "supports_mixed_chunk"}


def _from_string() -> str:
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

    for name in ("DDTREE", "ddtree"):
        member = SpeculativeAlgorithm.from_string(name)
        assert member is SpeculativeAlgorithm.DDTREE, f"from_string({name!r}) is {member}"
    return "DDTREE and ddtree are SpeculativeAlgorithm.DDTREE"


def _predicates() -> str:
    """DDTREE belongs to DFLASH's family and is no other; every other member answers as before."""
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

    family = {"DFLASH", "DDTREE"}
    for member in SpeculativeAlgorithm:
        assert member.is_ddtree() is (member.name == "DDTREE"), f"{member}.is_ddtree()"
        assert member.is_dflash() is (member.name in family), f"{member}.is_dflash()"
    ddtree, dflash = SpeculativeAlgorithm.DDTREE, SpeculativeAlgorithm.DFLASH
    shared = [name for name in vars(SpeculativeAlgorithm) if name.startswith(("is_", "supports_"))]
    for name in sorted(set(shared) - _OWN_ANSWERS):
        assert getattr(ddtree, name)() == getattr(dflash, name)(), f"{name}() differs between DDTREE and DFLASH"
    return f"{len(SpeculativeAlgorithm)} members, {len(shared)} predicates"


def _verify_input() -> str:
    import torch
    from sglang.srt.speculative.dflash_info import DDTreeVerifyInput, DFlashVerifyInput
    from sglang.srt.speculative.spec_info import SpecInputType

    nothing = torch.empty((0,), dtype=torch.int64)
    tree = DDTreeVerifyInput(draft_token=nothing, positions=nothing, draft_token_num=17)
    assert isinstance(tree, DFlashVerifyInput) and tree.is_verify_input()
    assert tree.spec_input_type == SpecInputType.DFLASH_VERIFY, tree.spec_input_type
    expect(tree, retrieve_index=None, retrieve_next_token=None, retrieve_next_sibling=None, tree_topk=-1, topk=1)
    raises(RuntimeError, lambda: tree.mask_tree(nothing, nothing), "tree mask")
    return "a DFLASH_VERIFY input that demands a tree mask"


def _worker() -> tuple[Any, Any]:
    """The module of this release's worker, and its class."""
    module, name = ("dflash_worker_v2", "DFlashWorkerV2") if overlaps() else ("dflash_worker", "DFlashWorker")
    worker = importlib.import_module(f"sglang.srt.speculative.{module}")
    return worker, getattr(worker, name)


def _worker_imports() -> str:
    from sglang.srt.speculative import dflash_info

    module, _ = _worker()
    assert module.DDTreeVerifyInput is dflash_info.DDTreeVerifyInput
    return f"{module.__name__} has dflash_info's DDTreeVerifyInput"


def _create_worker() -> str:
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

    worker = SpeculativeAlgorithm.DDTREE.create_worker(SimpleNamespace(disable_overlap_schedule=not overlaps()))
    assert worker is _worker()[1], worker
    return f"create_worker gives {worker.__name__}"


def _worker_keeps_algorithm() -> str:
    """As far as it can be constructed without models: the algorithm is kept first, then nothing is there to work on."""
    _, cls = _worker()
    parameters = dict.fromkeys(list(inspect.signature(cls.__init__).parameters)[1:])
    kept = []
    for name in ("DDTREE", "DFLASH"):
        worker = cls.__new__(cls)
        arguments = {**parameters, "server_args": SimpleNamespace(speculative_algorithm=name)}
        raises(Exception, partial(cls.__init__, worker, **arguments))
        kept.append(worker.speculative_algorithm)
    assert kept[0].is_ddtree() and not kept[1].is_ddtree(), kept
    return "self.speculative_algorithm is DDTREE or DFLASH, as the arguments say"


def _runtime_modules() -> str:
    from sglang.srt.speculative import ddtree_start, ddtree_tree, ddtree_worker

    assert ddtree_start.DDTreeRuntime is ddtree_worker.DDTreeRuntime
    assert ddtree_worker.build_tree is ddtree_tree.build_tree
    return "ddtree_start, ddtree_worker, ddtree_tree"


def _tree() -> str:
    """Two requests, two positions, three nodes each: every number below was worked out by hand."""
    import torch
    from sglang.srt.speculative import ddtree_tree as t

    logits = torch.tensor([[0.0, 3.0, 2.9, -9.0], [1.0, -9.0, 0.9, -9.0]]).repeat(2, 1)
    tokens, logprobs = t.top_candidates(logits, 2)
    tree = t.build_tree(torch.tensor([3, 3]), tokens.view(2, 2, 2), logprobs.view(2, 2, 2), 3, width=5)
    assert tree.tokens.tolist() == [[3, 1, 2, 0, 3]] * 2, tree.tokens
    assert tree.parents.tolist() == [[-1, 0, 0, 1, -1]] * 2, tree.parents
    table = t.ancestors(tree)
    mask = t.packed_mask(t.visibility(table), torch.tensor([1, 2]), 5 * 6 + 5 * 7)
    assert mask[18:24].tolist() == [True, True, True, False, True, False], mask  # node 3 of request 0: prefix, 0, 1, 3
    assert mask[-7:].tolist() == [True] * 2 + [False] * 4 + [True], mask  # padding of request 1: prefix, itself
    path = t.walk(tree, table, torch.tensor([[1, 0, 9, 8, 7], [2, 0, 5, 8, 7]]))
    assert path.lengths.tolist() == [3, 2] and path.bonus.tolist() == [8, 5], path
    return "a tree of three nodes is built, packed at unequal lengths, and walked"


def _graph_mask() -> str:
    import torch
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

    runner_class = _graph_runner()
    masks = {}
    for algorithm in (SpeculativeAlgorithm.DDTREE, SpeculativeAlgorithm.DFLASH):
        for is_draft in (False, True):
            runner = SimpleNamespace(
                model_runner=SimpleNamespace(
                    spec_algorithm=algorithm,
                    is_draft_worker=is_draft,
                    attn_backend=type("FlashInferAttnBackend", (), {})(),
                    server_args=SimpleNamespace(speculative_num_draft_tokens=5),
                    req_to_token_pool=SimpleNamespace(req_to_token=torch.zeros(1, 8)),
                ),
                attn_backend=SimpleNamespace(),
                max_num_token=10,
                max_bs=2,
                buffers=SimpleNamespace(custom_mask="mask"),
                is_dllm=False,
                num_tokens_per_bs=5,
                captured_req_width=5,
                _capture_ragged_verify_layout=lambda tokens: None,
            )
            captured = runner_class.get_spec_info(runner, 5)
            assert captured.draft_token_num == 5, captured.draft_token_num
            masks[algorithm.name, is_draft] = captured.custom_mask
    expected = {("DDTREE", False): "mask", ("DDTREE", True): None, ("DFLASH", False): None, ("DFLASH", True): None}
    assert masks == expected, masks
    return "the target's graph has a mask for DDTREE alone, the drafter's has none"


def _graph_runner() -> Any:
    if not overlaps():
        from sglang.srt.model_executor.cuda_graph_runner import CudaGraphRunner

        return CudaGraphRunner
    from sglang.srt.model_executor.runner.decode_cuda_graph_runner import DecodeCudaGraphRunner

    return DecodeCudaGraphRunner


def _requests_refused() -> str:
    from sglang.srt.sampling.sampling_params import SamplingParams
    from sglang.srt.speculative.ddtree_args import validate_ddtree_request

    def answer(params: dict[str, float], tokens: int = 5, **fields: object) -> str:
        req = SimpleNamespace(sampling_params=SamplingParams(**params), origin_input_ids=[1] * tokens, **fields)
        return str(validate_ddtree_request(req, 17, 100))

    assert answer({}) == answer({"temperature": 0.7, "top_k": 5, "top_p": 0.9, "min_p": 0.1}) == "None"
    assert answer({}, return_sampling_mask=False) == "None"
    refused_parameters = {
        "frequency_penalty": 0.5,
        "presence_penalty": 0.5,
        "repetition_penalty": 1.2,
        "min_new_tokens": 3,
    }
    for name, value in refused_parameters.items():
        assert name in answer({name: value}), name
    assert "return_sampling_mask" in answer({}, return_sampling_mask=True)
    assert "100 tokens of the KV cache" in answer({}, tokens=90)
    return f"{', '.join(refused_parameters)}, return_sampling_mask, and what has no room"


def _relays_nothing() -> str:
    """What the overlap scheduler keeps from one step to the next."""
    from sglang.srt.speculative import spec_utils

    if not overlaps():
        return "this release does not overlap steps"
    asked = {}
    for name in ("DDTREE", "DFLASH", "EAGLE"):
        spec = SimpleNamespace(speculative_algorithm=name, enable_multi_layer_eagle=False)
        if inspect.signature(spec_utils.spec_need_hidden_states).parameters:
            asked[name] = spec_utils.spec_need_hidden_states(spec)
        else:
            asked[name] = _with_spec(spec_utils, spec, spec_utils.spec_need_hidden_states)
    assert asked == {"DDTREE": False, "DFLASH": False, "EAGLE": True}, asked
    return "no hidden states are relayed for DDTREE, as for DFLASH"


def _with_spec(module: Any, spec: object, call: Callable[[], object]) -> object:
    """What a function answers while the module that it is in sees these published arguments."""
    published = module.get_spec
    module.get_spec = lambda: spec
    try:
        return call()
    finally:
        module.get_spec = published


def _third_party() -> str:
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

    if not hasattr(SpeculativeAlgorithm, "register"):
        return "this release has no registry"
    SpeculativeAlgorithm.register("ddtree_smoke_plugin")(lambda server_args: object)
    plugin = SpeculativeAlgorithm.from_string("DDTREE_SMOKE_PLUGIN")
    assert not plugin.is_ddtree() and not plugin.is_dflash()
    return "a third-party algorithm can be registered and is not DDTREE"


def _name_reserved() -> str:
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

    if not hasattr(SpeculativeAlgorithm, "register"):
        return "this release has no registry"
    return refused(lambda: SpeculativeAlgorithm.register("ddtree")(lambda server_args: object), "DDTREE")


ALGORITHM: dict[str, Callable[[], str]] = {
    "algorithm:from-string": _from_string,
    "algorithm:predicates": _predicates,
}
MODULES: dict[str, Callable[[], str]] = {
    "verify-input:class": _verify_input,
    "worker:imports-verify-input": _worker_imports,
    "worker:created": _create_worker,
    "worker:keeps-its-algorithm": _worker_keeps_algorithm,
    "worker:has-its-modules": _runtime_modules,
    "tree:built-packed-walked": _tree,
    "graph:captures-a-mask": _graph_mask,
    "scheduler:relays-nothing": _relays_nothing,
    "request:refused": _requests_refused,
    "registry:third-party": _third_party,
    "registry:name-reserved": _name_reserved,
}
