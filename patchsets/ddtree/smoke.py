"""What DDTREE must do in a patched SGLang: the smoke program, run by the target's own interpreter.

No GPU, no weights: models are configuration files that this program writes into a temporary folder.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import inspect
import io
import json
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

BLOCK_SIZE = 4
TARGET: dict[str, object] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "vocab_size": 512,
    "max_position_embeddings": 512,
    "torch_dtype": "float32",
}
DRAFT: dict[str, object] = {
    **TARGET,
    "architectures": ["DFlashDraftModel"],
    "model_type": "qwen3",
    "num_hidden_layers": 2,
    "num_target_layers": 4,
    "block_size": BLOCK_SIZE,
    "dflash_config": {"mask_token_id": 511, "target_layer_ids": [0, 2], "block_size": BLOCK_SIZE},
}
HYBRID: dict[str, object] = {
    **TARGET,
    "architectures": ["Qwen3NextForCausalLM"],
    "model_type": "qwen3_next",
    "full_attention_interval": 4,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "num_experts": 0,
}
MLA: dict[str, object] = {
    **TARGET,
    "architectures": ["DeepseekV2ForCausalLM"],
    "model_type": "deepseek_v2",
    "kv_lora_rank": 32,
    "q_lora_rank": None,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 32,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 4,
}


class Models:
    """Tiny models, as far as server arguments look at them."""

    def __init__(self, folder: Path) -> None:
        self.target = _model(folder / "target", TARGET)
        self.draft = _model(folder / "draft", DRAFT)
        self.hybrid = _model(folder / "hybrid", HYBRID)
        self.mla = _model(folder / "mla", MLA)

    def resolve(self, *flags: str, target: str = "", algorithm: str = "DDTREE") -> Any:
        """The command line, parsed and resolved by SGLang itself."""
        from sglang.srt.server_args import ServerArgs

        parser = argparse.ArgumentParser()
        ServerArgs.add_cli_args(parser)
        argv = ["--model-path", target or self.target, "--device", "cpu", "--skip-tokenizer-init"]
        argv += ["--speculative-algorithm", algorithm, "--speculative-draft-model-path", self.draft, *flags]
        return ServerArgs.from_cli_args(parser.parse_args(argv))


def checks() -> Iterator[tuple[str, Callable[[], str]]]:
    yield "algorithm:from-string", _from_string
    yield "algorithm:predicates", _predicates
    with tempfile.TemporaryDirectory() as folder:
        models = Models(Path(folder))
        for name, check in _CONFIGURATION.items():
            yield f"arguments:{name}", partial(check, models)
        for name, refusal in _refusals(models).items():
            yield f"refused:{name}", refusal
    yield "verify-input:class", _verify_input
    yield "worker:imports-verify-input", _worker_imports
    yield "worker:created", _create_worker
    yield "worker:keeps-its-algorithm", _worker_keeps_algorithm
    yield "worker:has-its-modules", _runtime_modules
    yield "tree:built-packed-walked", _tree
    yield "graph:captures-a-mask", _graph_mask
    yield "request:refused", _requests_refused
    yield "registry:third-party", _third_party
    yield "registry:name-reserved", _name_reserved


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
    for name in sorted(set(shared) - {"is_ddtree"}):
        assert getattr(ddtree, name)() == getattr(dflash, name)(), f"{name}() differs between DDTREE and DFLASH"
    return f"{len(SpeculativeAlgorithm)} members, {len(shared)} predicates"


def _defaults(models: Models) -> str:
    args = models.resolve()
    _expect(
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
        disable_overlap_schedule=True,
        page_size=1,
    )
    return f"block size {BLOCK_SIZE}, verify width 17, 48 running requests, attention backend {args.attention_backend}"


def _flags(models: Models) -> str:
    args = models.resolve(
        *("--speculative-ddtree-budget", "30", "--speculative-ddtree-topk", "3"),
        *("--speculative-ddtree-allow-hybrid-unsafe", "--speculative-dflash-block-size", "8"),
        *("--max-running-requests", "5", "--enable-mixed-chunk"),
    )
    _expect(
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


def _small_budget(models: Models) -> str:
    """The draft block needs as many slots as it has positions, even where the tree is smaller."""
    args = models.resolve("--speculative-ddtree-budget", "1")
    _expect(args, speculative_dflash_block_size=BLOCK_SIZE, speculative_num_draft_tokens=BLOCK_SIZE)
    copy = dataclasses.replace(args)
    _expect(copy, speculative_dflash_block_size=BLOCK_SIZE, speculative_num_draft_tokens=BLOCK_SIZE)
    return f"budget 1: verify width {BLOCK_SIZE}, the block size"


def _resolved_twice(models: Models) -> str:
    """Processes are given copies of resolved arguments, and a copy resolves itself."""
    args = models.resolve()
    copy = dataclasses.replace(args)
    _expect(copy, speculative_dflash_block_size=BLOCK_SIZE, speculative_num_draft_tokens=17)
    assert copy.attention_backend == args.attention_backend, copy.attention_backend
    return "a copy resolves to the same widths and backend"


def _backend_chosen(models: Models) -> str:
    plain = models.resolve().attention_backend
    assert plain in ("flashinfer", "triton"), f"{plain} was chosen"
    latent = models.resolve(target=models.mla).attention_backend
    assert latent == "triton", f"{latent} was chosen for a model with multi-head latent attention"
    split, _ = models.resolve("--decode-attention-backend", "torch_native").get_attention_backends()
    assert split in ("flashinfer", "triton"), f"{split} was chosen beside a forced decode backend"
    return f"{plain}; {latent} for multi-head latent attention; {split} beside a forced decode backend"


def _hybrid_allowed(models: Models) -> str:
    switch = ("--speculative-ddtree-allow-hybrid-unsafe", "--disable-radix-cache")
    args = models.resolve(*switch, target=models.hybrid)
    _expect(args, speculative_algorithm="DDTREE", speculative_num_draft_tokens=17)
    return "a hybrid target resolves with the switch"


_CONFIGURATION: dict[str, Callable[[Models], str]] = {
    "defaults": _defaults,
    "flags": _flags,
    "small-budget": _small_budget,
    "resolved-twice": _resolved_twice,
    "backend-chosen": _backend_chosen,
    "hybrid-with-switch": _hybrid_allowed,
}


def _refusals(models: Models) -> dict[str, Callable[[], str]]:
    """Each by the name of what is refused, with the words that its message must hold."""

    def by_argv(*flags: str, words: tuple[str, ...], target: str = "") -> Callable[[], str]:
        return lambda: _refused(lambda: models.resolve(*flags, target=target), *words)

    def by_parser(*flags: str, words: tuple[str, ...]) -> Callable[[], str]:
        return lambda: _refused_by_argparse(lambda: models.resolve(*flags), *words)

    def in_python(**fields: object) -> Callable[[], str]:
        (name,) = fields
        return lambda: _refused(lambda: _in_python(models, fields), "DDTREE", "--" + name.replace("_", "-"))

    budget, topk, backend = "--speculative-ddtree-budget", "--speculative-ddtree-topk", "--attention-backend"
    return {
        "budget-zero": by_parser(budget, "0", words=(budget, "positive integer")),
        "budget-negative": by_parser(budget, "-3", words=(budget, "positive integer")),
        "budget-text": by_parser(budget, "many", words=(budget, "positive integer")),
        "topk-zero": by_parser(topk, "0", words=(topk, "positive integer")),
        "budget-zero-in-python": in_python(speculative_ddtree_budget=0),
        "budget-bool-in-python": in_python(speculative_ddtree_budget=True),
        "topk-zero-in-python": in_python(speculative_ddtree_topk=0),
        "budget-too-big": by_argv(budget, "100000", words=("DDTREE", budget, "1024")),
        "budget-beyond-context": by_argv(budget, "600", words=("DDTREE", budget, "512 tokens")),
        "topk-beyond-vocabulary": by_argv(topk, "513", words=("DDTREE", topk, "512 tokens")),
        "page-size-16": by_argv("--page-size", "16", words=("DDTREE", "--page-size 1")),
        "pipeline-parallel": by_argv("--pp-size", "2", words=("DDTREE", "--pp-size 1")),
        "dp-attention": by_argv(
            *("--enable-dp-attention", "--tp-size", "2", "--dp-size", "2"), words=("DDTREE", "--enable-dp-attention")
        ),
        **{
            f"backend-{name}": by_argv(backend, name, words=("DDTREE", repr(name), "flashinfer or triton"))
            for name in ("fa3", "trtllm_mha", "flashmla", "torch_native", "aiter", "wave")
        },
        "backend-of-decode": by_argv(
            *("--speculative-attention-mode", "decode", "--decode-attention-backend", "fa3"), words=("DDTREE", "'fa3'")
        ),
        "flashinfer-with-mla": by_argv(backend, "flashinfer", words=("DDTREE", "MLA", "triton"), target=models.mla),
        "hybrid": by_argv(words=("DDTREE", "hybrid", "--speculative-ddtree-allow-hybrid-unsafe"), target=models.hybrid),
        "block-size-one": by_argv("--speculative-dflash-block-size", "1", words=("DDTREE", "block size")),
    }


def _verify_input() -> str:
    import torch
    from sglang.srt.speculative.dflash_info import DDTreeVerifyInput, DFlashVerifyInput
    from sglang.srt.speculative.spec_info import SpecInputType

    nothing = torch.empty((0,), dtype=torch.int64)
    tree = DDTreeVerifyInput(draft_token=nothing, positions=nothing, draft_token_num=17)
    assert isinstance(tree, DFlashVerifyInput) and tree.is_verify_input()
    assert tree.spec_input_type == SpecInputType.DFLASH_VERIFY, tree.spec_input_type
    _expect(tree, retrieve_index=None, retrieve_next_token=None, retrieve_next_sibling=None, tree_topk=-1, topk=1)
    batch = SimpleNamespace(forward_mode=SimpleNamespace(is_idle=lambda: False))
    _raises(RuntimeError, lambda: tree.prepare_for_verify(batch, 1), "tree mask")
    return "a DFLASH_VERIFY input that demands a tree mask"


def _worker_imports() -> str:
    from sglang.srt.speculative import dflash_info, dflash_worker

    assert dflash_worker.DDTreeVerifyInput is dflash_info.DDTreeVerifyInput
    return "dflash_worker has dflash_info's DDTreeVerifyInput"


def _create_worker() -> str:
    from sglang.srt.speculative.dflash_worker import DFlashWorker
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

    worker = SpeculativeAlgorithm.DDTREE.create_worker(SimpleNamespace(disable_overlap_schedule=True))
    assert worker is DFlashWorker, worker
    return "create_worker gives DFlashWorker"


def _worker_keeps_algorithm() -> str:
    """As far as it can be constructed without models: the algorithm is kept first, then nothing is there to work on."""
    from sglang.srt.speculative.dflash_worker import DFlashWorker

    parameters = dict.fromkeys(list(inspect.signature(DFlashWorker.__init__).parameters)[1:])
    kept = []
    for name in ("DDTREE", "DFLASH"):
        worker = DFlashWorker.__new__(DFlashWorker)
        arguments = {**parameters, "server_args": SimpleNamespace(speculative_algorithm=name)}
        _raises(AttributeError, partial(DFlashWorker.__init__, worker, **arguments))
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
    mask = t.packed_mask(tree, t.visibility(table), torch.tensor([1, 2]), 5 * 6 + 5 * 7)
    assert mask[18:24].tolist() == [True, True, True, False, True, False], mask  # node 3 of request 0: prefix, 0, 1, 3
    assert mask[-7:].tolist() == [False] * 6 + [True], mask  # padding of request 1 sees itself
    path = t.walk(tree, table, torch.tensor([[1, 0, 9, 8, 7], [2, 0, 5, 8, 7]]))
    assert path.lengths.tolist() == [3, 2] and path.bonus.tolist() == [8, 5], path
    return "a tree of three nodes is built, packed at unequal lengths, and walked"


def _graph_mask() -> str:
    from sglang.srt.model_executor.cuda_graph_runner import CudaGraphRunner
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

    masks = {}
    for algorithm in (SpeculativeAlgorithm.DDTREE, SpeculativeAlgorithm.DFLASH):
        for is_draft in (False, True):
            runner = SimpleNamespace(
                model_runner=SimpleNamespace(
                    spec_algorithm=algorithm,
                    is_draft_worker=is_draft,
                    attn_backend=type("FlashInferAttnBackend", (), {})(),
                    server_args=SimpleNamespace(speculative_num_draft_tokens=5),
                ),
                buffers=SimpleNamespace(custom_mask="mask"),
                is_dllm=False,
            )
            masks[algorithm.name, is_draft] = CudaGraphRunner.get_spec_info(runner, 5).custom_mask
    expected = {("DDTREE", False): "mask", ("DDTREE", True): None, ("DFLASH", False): None, ("DFLASH", True): None}
    assert masks == expected, masks
    return "the target's graph has a mask for DDTREE alone, the drafter's has none"


def _requests_refused() -> str:
    from sglang.srt.sampling.sampling_params import SamplingParams
    from sglang.srt.speculative.ddtree_args import validate_ddtree_request

    def answer(params: dict[str, float], tokens: int = 5) -> str:
        req = SimpleNamespace(sampling_params=SamplingParams(**params), origin_input_ids=[1] * tokens)
        return str(validate_ddtree_request(req, 17, 100))

    assert answer({}) == answer({"temperature": 0.7, "top_k": 5, "top_p": 0.9, "min_p": 0.1}) == "None"
    refused = {"frequency_penalty": 0.5, "presence_penalty": 0.5, "repetition_penalty": 1.2, "min_new_tokens": 3}
    for name, value in refused.items():
        assert name in answer({name: value}), name
    assert "100 tokens of the KV cache" in answer({}, tokens=90)
    return f"{', '.join(refused)}, and what has no room"


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
    return _refused(lambda: SpeculativeAlgorithm.register("ddtree")(lambda server_args: object), "DDTREE")


def _model(folder: Path, config: dict[str, object]) -> str:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(folder)


def _in_python(models: Models, fields: dict[str, object]) -> Any:
    from sglang.srt.server_args import ServerArgs

    return ServerArgs(
        model_path=models.target,
        device="cpu",
        skip_tokenizer_init=True,
        speculative_algorithm="DDTREE",
        speculative_draft_model_path=models.draft,
        **fields,
    )


def _expect(holder: object, **values: object) -> None:
    for name, value in values.items():
        found = getattr(holder, name)
        assert found == value and type(found) is type(value), f"{name} is {found!r}, not {value!r}"


def _refused(action: Callable[[], object], *words: str) -> str:
    return _raises(ValueError, action, *words)


def _raises(kind: type[Exception], action: Callable[[], object], *words: str) -> str:
    try:
        action()
    except kind as error:
        return _says(str(error), words)
    raise AssertionError(f"no {kind.__name__}")


def _refused_by_argparse(action: Callable[[], object], *words: str) -> str:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            action()
    except SystemExit:
        return _says(said.getvalue().strip().splitlines()[-1], words)
    raise AssertionError("the parser accepted it")


def _says(message: str, words: tuple[str, ...]) -> str:
    for word in words:
        assert word in message, f"{word!r} is not in the message: {message}"
    return message
