"""DDTREE's server arguments on plain objects: no SGLang and no torch."""

from __future__ import annotations

import argparse
import importlib.util
import logging
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

SOURCE = Path(__file__).parents[2] / "patchsets" / "ddtree" / "runtime" / "ddtree_args.py"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ddtree_args_under_test", SOURCE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ddtree_args = _load()


class Config:
    """A Hugging Face configuration: attributes, and a text configuration that is itself unless given."""

    def __init__(self, **values: Any) -> None:
        self.architectures = ["LlamaForCausalLM"]
        self.__dict__.update(values)

    def get_text_config(self) -> Any:
        return self.__dict__.get("text_config", self)


class RecurrentConfig(Config):
    @property
    def mamba2_cache_params(self) -> Any:
        raise AssertionError("attention tensor-parallel group is not initialized")


class Args(SimpleNamespace):
    """What ServerArgs offers, as far as DDTREE looks at it."""

    def get_model_config(self) -> Any:
        return SimpleNamespace(
            hf_config=self.hf_config, has_attention_sinks=self.sinks, vocab_size=512, context_len=256
        )

    def use_mla_backend(self) -> bool:
        return bool(self.mla)

    def get_attention_backends(self) -> tuple[Any, Any]:
        return (
            self.prefill_attention_backend or self.attention_backend,
            self.decode_attention_backend or self.attention_backend,
        )

    def enable_mamba_extra_buffer(self) -> bool:
        return bool(self.extra_buffer)


def arguments(**changes: Any) -> Args:
    defaults: dict[str, Any] = {
        "speculative_algorithm": "DDTREE",
        "speculative_ddtree_budget": 16,
        "speculative_ddtree_topk": 8,
        "speculative_ddtree_allow_hybrid_unsafe": False,
        "speculative_dflash_block_size": None,
        "speculative_num_draft_tokens": None,
        "speculative_attention_mode": "prefill",
        "attention_backend": None,
        "prefill_attention_backend": None,
        "decode_attention_backend": None,
        "enable_dp_attention": False,
        "pp_size": 1,
        "page_size": None,
        "mamba_track_interval": 256,
        "hf_config": Config(),
        "sinks": False,
        "mla": False,
        "extra_buffer": False,
    }
    return Args(**{**defaults, **changes})


def checked(**changes: Any) -> Args:
    """Arguments as they are when DFLASH's checks begin."""
    return arguments(**{"attention_backend": "triton", "page_size": 1, **changes})


@pytest.fixture(autouse=True)
def sglang(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The modules of SGLang's that are imported on the way: flashinfer is there, and no plug-in has registered."""
    state = SimpleNamespace(flashinfer=True, registered=None)
    for name in ("sglang", "sglang.srt", "sglang.srt.configs", "sglang.srt.utils"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    utils = ModuleType("sglang.srt.utils.common")
    utils.is_flashinfer_available = lambda: state.flashinfer  # type: ignore[attr-defined]
    registry = ModuleType("sglang.srt.configs.linear_attn_model_registry")
    registry.get_linear_attn_config = lambda config: state.registered  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, utils.__name__, utils)
    monkeypatch.setitem(sys.modules, registry.__name__, registry)
    return state


class TestImport:
    def test_it_loads_neither_torch_nor_sglang(self) -> None:
        code = f"import runpy, sys; runpy.run_path({str(SOURCE)!r}); print({{'torch', 'sglang'}} & set(sys.modules))"
        assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


class TestPositiveInt:
    def test_it_reads_a_positive_integer(self) -> None:
        assert ddtree_args.positive_int("16") == 16

    @pytest.mark.parametrize("text", ["0", "-1", "1.5", "many", ""])
    def test_it_refuses_everything_else(self, text: str) -> None:
        with pytest.raises(argparse.ArgumentTypeError, match="positive integer"):
            ddtree_args.positive_int(text)


class TestOtherAlgorithms:
    @pytest.mark.parametrize("algorithm", [None, "DFLASH", "EAGLE", "NGRAM", "dflash"])
    def test_prepare_does_not_touch_them(self, algorithm: str | None) -> None:
        args = arguments(speculative_algorithm=algorithm, speculative_ddtree_budget=0, page_size=16)
        before = dict(vars(args))
        ddtree_args.prepare_ddtree_args(args)
        assert vars(args) == before


class TestBackendChoice:
    def test_flashinfer_where_it_is_available(self, caplog: pytest.LogCaptureFixture) -> None:
        args = arguments()
        with caplog.at_level(logging.INFO):
            ddtree_args.prepare_ddtree_args(args)
        assert args.attention_backend == "flashinfer"
        assert "Use flashinfer" in caplog.text

    def test_triton_where_it_is_not(self, sglang: SimpleNamespace) -> None:
        sglang.flashinfer = False
        args = arguments()
        ddtree_args.prepare_ddtree_args(args)
        assert args.attention_backend == "triton"

    @pytest.mark.parametrize(
        "changes", [{"mla": True}, {"sinks": True}, {"hf_config": Config(architectures=["Gemma4ForCausalLM"])}]
    )
    def test_triton_for_a_model_that_flashinfer_does_not_suit(self, changes: dict[str, Any]) -> None:
        args = arguments(**changes)
        ddtree_args.prepare_ddtree_args(args)
        assert args.attention_backend == "triton"

    @pytest.mark.parametrize("field", ["attention_backend", "prefill_attention_backend"])
    def test_the_users_choice_is_kept(self, field: str) -> None:
        args = arguments(**{field: "triton"})
        before = dict(vars(args))
        ddtree_args.prepare_ddtree_args(args)
        assert vars(args) == before

    def test_one_is_chosen_when_the_user_forced_only_the_backend_that_does_not_verify(self) -> None:
        args = arguments(decode_attention_backend="fa3")
        ddtree_args.prepare_ddtree_args(args)
        assert args.get_attention_backends() == ("flashinfer", "fa3")

    def test_a_lower_case_name_is_made_canonical(self) -> None:
        args = arguments(speculative_algorithm="ddtree")
        ddtree_args.prepare_ddtree_args(args)
        assert args.speculative_algorithm == "DDTREE"


BOTH = [ddtree_args.prepare_ddtree_args, ddtree_args.check_ddtree_args]


@pytest.mark.parametrize("function", BOTH)
class TestRefusedFromTheBeginning:
    @pytest.mark.parametrize("value", [0, -1, True, False, 1.0, "16", None])
    @pytest.mark.parametrize("name", ["budget", "topk"])
    def test_what_is_not_a_positive_integer(self, function: Any, name: str, value: object) -> None:
        with pytest.raises(ValueError, match=f"--speculative-ddtree-{name} to be a positive integer"):
            function(checked(**{f"speculative_ddtree_{name}": value}))

    def test_a_budget_above_the_bound(self, function: Any) -> None:
        function(checked(speculative_ddtree_budget=1024))
        with pytest.raises(ValueError, match=r"--speculative-ddtree-budget to be at most 1024 .* got 1025"):
            function(checked(speculative_ddtree_budget=1025))

    @pytest.mark.parametrize("backend", ["fa3", "fa4", "trtllm_mha", "trtllm_mla", "flashmla", "torch_native", "wave"])
    def test_a_backend_without_a_tree_mask(self, function: Any, backend: str) -> None:
        with pytest.raises(ValueError, match=f"'{backend}'.*--attention-backend flashinfer or triton"):
            function(checked(attention_backend=backend))

    @pytest.mark.parametrize("mode", ["prefill", "decode"])
    def test_only_the_backend_that_verifies_counts(self, function: Any, mode: str) -> None:
        other = {"prefill": "decode", "decode": "prefill"}[mode]
        function(checked(speculative_attention_mode=mode, **{f"{other}_attention_backend": "fa3"}))
        with pytest.raises(ValueError, match="'fa3'"):
            function(checked(speculative_attention_mode=mode, **{f"{mode}_attention_backend": "fa3"}))

    def test_flashinfer_for_latent_attention(self, function: Any) -> None:
        function(checked(attention_backend="flashinfer"))
        with pytest.raises(ValueError, match=r"MLA.*--attention-backend triton"):
            function(checked(attention_backend="flashinfer", mla=True))

    def test_a_paged_kv_cache(self, function: Any) -> None:
        function(checked(page_size=1))
        with pytest.raises(ValueError, match="--page-size 1, got 16"):
            function(checked(page_size=16))

    def test_the_backend_is_named_before_the_page_size_that_it_brought_along(self, function: Any) -> None:
        with pytest.raises(ValueError, match="'trtllm_mha'"):
            function(checked(attention_backend="trtllm_mha", page_size=64))


class TestHybrid:
    @pytest.mark.parametrize(
        "config",
        [
            RecurrentConfig(),
            RecurrentConfig(linear_layer_ids=[0, 1]),
            RecurrentConfig(mamba_layer_ids=[2]),
            Config(text_config=RecurrentConfig()),
            Config(llm_config=RecurrentConfig()),
        ],
    )
    def test_recurrent_layers_anywhere_are_refused(self, config: Config) -> None:
        with pytest.raises(ValueError, match=r"hybrid targets.*--speculative-ddtree-allow-hybrid-unsafe"):
            ddtree_args.prepare_ddtree_args(arguments(hf_config=config))

    def test_a_registered_plug_in_model_is_refused(self, sglang: SimpleNamespace) -> None:
        sglang.registered = ("spec", "config")
        with pytest.raises(ValueError, match="hybrid targets"):
            ddtree_args.prepare_ddtree_args(arguments())

    def test_a_release_without_the_registry(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "sglang.srt.configs.linear_attn_model_registry", None)
        assert not ddtree_args.is_hybrid_target(arguments())

    @pytest.mark.parametrize(
        "config", [Config(), Config(text_config=None), RecurrentConfig(linear_layer_ids=[]), SimpleNamespace()]
    )
    def test_no_recurrent_layer_is_no_hybrid(self, config: Any) -> None:
        assert not ddtree_args.is_hybrid_target(arguments(hf_config=config))

    def test_the_switch_allows_it_and_says_what_will_be_wrong(self, caplog: pytest.LogCaptureFixture) -> None:
        args = arguments(hf_config=RecurrentConfig(), speculative_ddtree_allow_hybrid_unsafe=True)
        ddtree_args.prepare_ddtree_args(args)
        assert "leaks between sibling branches" in caplog.text


class TestCheck:
    def test_data_parallel_attention_is_refused(self) -> None:
        with pytest.raises(ValueError, match="Remove --enable-dp-attention"):
            ddtree_args.check_ddtree_args(checked(enable_dp_attention=True))

    def test_pipeline_parallelism_is_refused(self) -> None:
        with pytest.raises(ValueError, match="--pp-size 1, got 2"):
            ddtree_args.check_ddtree_args(checked(pp_size=2))

    def test_a_resolved_width_becomes_the_block_size_again(self) -> None:
        args = checked(speculative_dflash_block_size=8, speculative_num_draft_tokens=17)
        ddtree_args.check_ddtree_args(args)
        assert args.speculative_num_draft_tokens == 8

    @pytest.mark.parametrize(("block_size", "draft_tokens"), [(8, 9), (None, 17), (8, None), (None, None)])
    def test_every_other_width_is_left_to_dflash(self, block_size: int | None, draft_tokens: int | None) -> None:
        args = checked(speculative_dflash_block_size=block_size, speculative_num_draft_tokens=draft_tokens)
        ddtree_args.check_ddtree_args(args)
        assert args.speculative_num_draft_tokens == draft_tokens


class TestResolve:
    def test_the_block_size_and_the_verify_width_are_kept_apart(self) -> None:
        args = checked(speculative_num_draft_tokens=8, speculative_ddtree_budget=30)
        ddtree_args.resolve_ddtree_args(args)
        assert (args.speculative_dflash_block_size, args.speculative_num_draft_tokens) == (8, 31)

    def test_resolving_twice_changes_nothing(self) -> None:
        args = checked(speculative_num_draft_tokens=8)
        ddtree_args.resolve_ddtree_args(args)
        before = dict(vars(args))
        ddtree_args.check_ddtree_args(args)
        ddtree_args.resolve_ddtree_args(args)
        assert vars(args) == before

    @pytest.mark.parametrize("block_size", [0, 1, None])
    def test_a_block_without_a_drafted_position_is_refused(self, block_size: int | None) -> None:
        with pytest.raises(ValueError, match="block size of at least 2"):
            ddtree_args.resolve_ddtree_args(checked(speculative_num_draft_tokens=block_size))

    def test_a_mamba_track_interval_below_the_verify_width_is_refused(self) -> None:
        hybrid = {"hf_config": RecurrentConfig(), "speculative_ddtree_allow_hybrid_unsafe": True, "extra_buffer": True}
        ddtree_args.resolve_ddtree_args(checked(speculative_num_draft_tokens=8, mamba_track_interval=17, **hybrid))
        with pytest.raises(ValueError, match="--mamba-track-interval to be at least the verify width 17, got 16"):
            ddtree_args.resolve_ddtree_args(checked(speculative_num_draft_tokens=8, mamba_track_interval=16, **hybrid))


class TestSmallTree:
    """The draft block takes as many KV slots as it has positions, so W is never less than B."""

    def test_a_budget_below_the_block_is_padded_to_it(self) -> None:
        args = checked(speculative_num_draft_tokens=8, speculative_ddtree_budget=1)
        for _ in range(2):
            ddtree_args.resolve_ddtree_args(args)
            assert (args.speculative_dflash_block_size, args.speculative_num_draft_tokens) == (8, 8)
            ddtree_args.check_ddtree_args(args)

    @pytest.mark.parametrize(("block_size", "budget", "width"), [(8, 6, 8), (8, 7, 8), (8, 8, 9), (2, 1, 2)])
    def test_the_width(self, block_size: int, budget: int, width: int) -> None:
        assert ddtree_args.verify_width(budget, block_size) == width


class TestTooLargeTree:
    def test_more_candidates_than_tokens_are_refused(self) -> None:
        ddtree_args.resolve_ddtree_args(checked(speculative_num_draft_tokens=8, speculative_ddtree_topk=512))
        with pytest.raises(ValueError, match=r"--speculative-ddtree-topk to be at most .* 512 tokens, got 513"):
            ddtree_args.resolve_ddtree_args(checked(speculative_num_draft_tokens=8, speculative_ddtree_topk=513))

    def test_a_budget_without_room_for_a_prompt_is_refused(self) -> None:
        ddtree_args.resolve_ddtree_args(checked(speculative_num_draft_tokens=8, speculative_ddtree_budget=254))
        with pytest.raises(ValueError, match="context length of 256 tokens beside a prompt, got 255"):
            ddtree_args.resolve_ddtree_args(checked(speculative_num_draft_tokens=8, speculative_ddtree_budget=255))


class TestRequest:
    """What DDTREE refuses of a request, beside what DFLASH refuses."""

    @staticmethod
    def answer(tokens: int = 10, **params: Any) -> str | None:
        plain = {"frequency_penalty": 0.0, "presence_penalty": 0.0, "repetition_penalty": 1.0, "min_new_tokens": 0}
        req = SimpleNamespace(sampling_params=SimpleNamespace(**{**plain, **params}), origin_input_ids=[1] * tokens)
        return ddtree_args.validate_ddtree_request(req, 17, 100)

    def test_a_plain_request_is_served(self) -> None:
        assert self.answer() is None

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("frequency_penalty", 0.1),
            ("frequency_penalty", -0.1),
            ("presence_penalty", 1.0),
            ("repetition_penalty", 0.9),
            ("min_new_tokens", 1),
        ],
    )
    def test_a_penalty_is_refused_by_its_name(self, name: str, value: float) -> None:
        answer = self.answer(**{name: value})
        assert answer is not None and f"does not support {name}" in answer and f"Leave {name} out" in answer

    def test_a_prompt_without_room_for_a_tree_is_refused(self) -> None:
        assert self.answer(83) is None
        answer = self.answer(84)
        assert answer is not None and "84 input tokens and the 17 nodes" in answer and "100 tokens" in answer


@pytest.mark.parametrize(("text", "on"), [("1", True), ("true", True), ("0", False), ("", False), ("OFF", False)])
def test_switches(text: str, on: bool) -> None:
    assert ddtree_args.is_on(text) is on
