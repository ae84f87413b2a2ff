"""DDTREE's server arguments on plain objects: no SGLang and no torch."""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from ddtree_stand_ins import Config, RecurrentConfig, Release, View, arguments, checked

from ddtree_runtime import RUNTIME, SPECULATIVE, load_args

ddtree_args, _ = load_args()


@pytest.fixture(autouse=True)
def sglang(monkeypatch: pytest.MonkeyPatch) -> Release:
    return Release(monkeypatch)


class TestImport:
    def test_it_loads_neither_torch_nor_sglang(self) -> None:
        """A process that reads arguments, such as a launcher's, must not pay for what it does not use."""
        code = (
            "import sys, types\n"
            f"for name in ('sglang', 'sglang.srt', {SPECULATIVE!r}):\n"
            "    sys.modules[name] = types.ModuleType(name)\n"
            f"sys.modules[{SPECULATIVE!r}].__path__ = [{str(RUNTIME)!r}]\n"
            f"import {SPECULATIVE}.ddtree_args\n"
            "print(sorted(name for name in sys.modules if name.startswith(('sglang', 'torch'))))"
        )
        loaded = subprocess.check_output([sys.executable, "-c", code], text=True)
        own = [f"{SPECULATIVE}.ddtree_{name}" for name in ("args", "families", "refusals", "resolution")]
        assert loaded == f"{sorted(['sglang', 'sglang.srt', SPECULATIVE, *own])}\n"


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

    def test_triton_where_it_is_not(self, sglang: Release) -> None:
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
        assert (args.attention_backend, args.decode_attention_backend) == ("flashinfer", "fa3")

    def test_a_lower_case_name_is_made_canonical(self) -> None:
        args = arguments(speculative_algorithm="ddtree")
        ddtree_args.prepare_ddtree_args(args)
        assert args.speculative_algorithm == "DDTREE"


class TestDeclared:
    """A release whose resolution leaves the arguments as they were given."""

    @pytest.fixture(autouse=True)
    def _release(self, sglang: Release) -> None:
        sglang.declare()

    def test_what_is_chosen_is_declared(self) -> None:
        args = arguments(speculative_algorithm="ddtree", declared=[])
        given = {name: value for name, value in vars(args).items() if name != "declared"}
        ddtree_args.prepare_ddtree_args(args)
        view = View(args)
        assert (view.speculative_algorithm, view.attention_backend) == ("DDTREE", "flashinfer")
        args.declared.append(("_handle_dflash", {"speculative_num_draft_tokens": 8}))
        ddtree_args.check_ddtree_args(args)
        ddtree_args.resolve_ddtree_args(args)
        assert (view.speculative_dflash_block_size, view.speculative_num_draft_tokens) == (8, 17)
        assert {name: value for name, value in vars(args).items() if name != "declared"} == given
        assert {source for source, _ in args.declared} == {"DDTREE", "_handle_dflash"}

    def test_what_was_declared_by_others_counts(self) -> None:
        args = arguments(attention_backend="triton", declared=[("model", {"attention_backend": "fa3"})])
        with pytest.raises(ValueError, match="'fa3'"):
            ddtree_args.check_ddtree_args(args)

    def test_an_algorithm_that_was_taken_back_is_not_touched(self) -> None:
        args = arguments(declared=[("capture", {"speculative_algorithm": None})], speculative_ddtree_budget=0)
        ddtree_args.prepare_ddtree_args(args)
        assert len(args.declared) == 1

    def test_the_extra_buffer_is_asked_of_the_view(self) -> None:
        hybrid = {"hf_config": RecurrentConfig(), "speculative_ddtree_allow_hybrid_unsafe": True}
        args = checked(declared=[("x", {"extra_buffer": True})], speculative_num_draft_tokens=8, **hybrid)
        args.mamba_track_interval = 16
        with pytest.raises(ValueError, match="--mamba-track-interval"):
            ddtree_args.resolve_ddtree_args(args)


class TestHybrid:
    """What is known of families is in ``test_ddtree_families.py``."""

    def test_recurrent_layers_that_cannot_follow_a_tree_are_refused(self) -> None:
        with pytest.raises(ValueError, match=r"hybrid targets.*--speculative-ddtree-allow-hybrid-unsafe"):
            ddtree_args.prepare_ddtree_args(arguments(hf_config=RecurrentConfig()))

    def test_those_that_can_need_no_switch_and_cause_no_warning(self, caplog: pytest.LogCaptureFixture) -> None:
        config = type("Qwen3NextConfig", (RecurrentConfig,), {})()
        ddtree_args.prepare_ddtree_args(arguments(hf_config=config))
        assert not [record for record in caplog.records if record.levelname == "WARNING"]

    def test_the_switch_allows_it_and_says_what_will_be_wrong(self, caplog: pytest.LogCaptureFixture) -> None:
        config = type("ZayaConfig", (RecurrentConfig,), {})()
        args = arguments(hf_config=config, speculative_ddtree_allow_hybrid_unsafe=True)
        ddtree_args.prepare_ddtree_args(args)
        assert "a branch of the tree sees the tokens of its siblings" in caplog.text
        assert "Generated tokens differ" in caplog.text


class TestCheck:
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

    def test_mixed_chunked_prefill_is_turned_off(self, caplog: pytest.LogCaptureFixture) -> None:
        args = checked(speculative_num_draft_tokens=8, enable_mixed_chunk=True)
        ddtree_args.resolve_ddtree_args(args)
        assert args.enable_mixed_chunk is False and "mixed chunked prefill is disabled" in caplog.text

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

    @pytest.mark.parametrize("asked", [True, False])
    def test_the_support_of_what_was_sampled_is_refused(self, asked: bool) -> None:
        plain = {"frequency_penalty": 0.0, "presence_penalty": 0.0, "repetition_penalty": 1.0, "min_new_tokens": 0}
        req = SimpleNamespace(
            sampling_params=SimpleNamespace(**plain), origin_input_ids=[1], return_sampling_mask=asked
        )
        answer = ddtree_args.validate_ddtree_request(req, 17, 100)
        assert (answer is not None and "Leave return_sampling_mask out" in answer) is asked

    @pytest.mark.parametrize(
        ("overlaps", "room", "trees"), [(False, 83, "a draft tree"), (True, 66, "two draft trees")]
    )
    def test_a_prompt_without_room_for_a_tree_is_refused(
        self, overlaps: bool, room: int, trees: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where batches overlap, two steps are reserved."""
        monkeypatch.setattr(ddtree_args, "moves_kv_cache", lambda: overlaps)
        assert self.answer(room) is None
        answer = self.answer(room + 1)
        assert answer is not None and f"{room + 1} input tokens and the 17 nodes of " in answer
        assert trees in answer and "100 tokens" in answer


@pytest.mark.parametrize(("text", "on"), [("1", True), ("true", True), ("0", False), ("", False), ("OFF", False)])
def test_switches(text: str, on: bool) -> None:
    assert ddtree_args.is_on(text) is on
