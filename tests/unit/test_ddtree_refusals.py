"""What DDTREE refuses to start with, on plain objects: no SGLang and no torch."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from ddtree_stand_ins import Release, checked

from ddtree_runtime import load_args

ddtree_args, ddtree_refusals = load_args()


@pytest.fixture(autouse=True)
def sglang(monkeypatch: pytest.MonkeyPatch) -> Release:
    return Release(monkeypatch)


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


SWITCHES = (
    "enable_dp_attention",
    "enable_cp_tp_group_sharing",
    "enable_prefill_cp",
    "enable_prefill_context_parallel",
    "enable_nsa_prefill_context_parallel",
    "enable_dsa_prefill_context_parallel",
    "enable_layernorm_sp",
    "enable_two_batch_overlap",
    "enable_hisparse",
    "enable_linear_replayssm_spec",
    "enable_gdn_replayssm_spec",
    "speculative_use_block_verification",
)
SIZES = ("pp_size", "attn_dp_size", "attn_cp_size", "dcp_size")
BESIDE_MOVED_KV = (
    "enable_unified_memory",
    "enable_kv_cache_sharding",
    "enable_return_routed_experts",
    "enable_return_indexer_topk",
)


@pytest.mark.parametrize("function", BOTH)
class TestUnsupported:
    """Each argument under the name that some release gives it; a release that lacks it cannot have it set."""

    @pytest.mark.parametrize("name", SWITCHES)
    def test_a_switch_that_is_on(self, function: Any, name: str) -> None:
        function(checked(**{name: False}))
        flag = "--" + name.replace("_", "-")
        with pytest.raises(ValueError, match=rf"DDTREE does not support .*: .*\. Remove {flag}\."):
            function(checked(**{name: True}))

    @pytest.mark.parametrize("name", SIZES)
    def test_a_size_above_one(self, function: Any, name: str) -> None:
        function(checked(**{name: 1}))
        flag = "--" + name.replace("_", "-")
        with pytest.raises(ValueError, match=rf"DDTREE does not support .*: .*\. Use {flag} 1, got 2\."):
            function(checked(**{name: 2}))

    @pytest.mark.parametrize("name", BESIDE_MOVED_KV)
    def test_what_is_not_moved_with_the_accepted_path(self, function: Any, name: str, sglang: Release) -> None:
        function(checked(**{name: True}))
        sglang.move_kv_cache()
        with pytest.raises(ValueError, match="Remove --" + name.replace("_", "-")):
            function(checked(**{name: True}))

    @pytest.mark.parametrize("dtype", ["fp4_e2m1", "fp4_mx_block16", "nvfp4"])
    def test_scales_that_are_not_moved_either(self, function: Any, dtype: str, sglang: Release) -> None:
        function(checked(kv_cache_dtype=dtype))
        sglang.move_kv_cache()
        function(checked(kv_cache_dtype="fp8_e4m3"))
        with pytest.raises(ValueError, match=f"--kv-cache-dtype {dtype}.*Use --kv-cache-dtype auto"):
            function(checked(kv_cache_dtype=dtype))

    def test_pages_where_the_accepted_path_is_moved(self, function: Any, sglang: Release) -> None:
        sglang.move_kv_cache()
        function(checked(page_size=16))

    def test_a_kernel_that_ignores_the_mask(self, function: Any, sglang: Release) -> None:
        """Triton's split-KV verification on CDNA 4, on by default from 0.5.14 on."""
        common = sys.modules["sglang.srt.utils.common"]
        common.is_gfx95_supported = lambda: True  # type: ignore[attr-defined]
        switch = SimpleNamespace(get=lambda: True)
        sglang.add("sglang.srt.environ", envs=SimpleNamespace(SGLANG_ENABLE_SPLITKV_VERIFY=switch))
        with pytest.raises(ValueError, match="SGLANG_ENABLE_SPLITKV_VERIFY=0"):
            function(checked())
        switch.get = lambda: False
        function(checked())


class TestASlidingWindow:
    """Known when the model is there: configurations name windows that their models do not use."""

    @pytest.mark.parametrize("window", [1, 128, 4095])
    def test_that_a_request_can_outgrow(self, window: int) -> None:
        with pytest.raises(ValueError, match=rf"sliding-window attention \(here {window} tokens\).*DFLASH"):
            ddtree_refusals.refuse_sliding_window(window, 4096)

    @pytest.mark.parametrize("window", [None, -1, 4096, 100_000])
    def test_that_no_request_outgrows(self, window: int | None) -> None:
        ddtree_refusals.refuse_sliding_window(window, 4096)
