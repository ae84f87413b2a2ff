"""A tree whose recurrent states have no room is refused, with the largest budget that has."""

from __future__ import annotations

from ddtree_patcher.codemods import Anchor, InsertBefore
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Contract, Refusal, Step, Variant
from ddtree_patcher.shape import Defines, HasFile, Holds, Lacks, Shape

from ..files import DDTREE_ROOM, KV_CACHE_CONFIGURATOR, KV_CACHE_MIXIN, SPEC_INFO, fragments, indented

_CODE = fragments("kv_cache_sizing.py")
_MIXIN, _CONFIGURATOR = "ModelRunnerKVCacheMixin", "KVCacheConfigurator"
_SCOPE = "_profile_available_bytes"
_HYBRID = "if self.mambaish_config is not None: ..."
_FIRST = Holds(
    KV_CACHE_MIXIN,
    Anchor("mamba_state_intermediate_size = ...", scope=f"{_MIXIN}.handle_max_mamba_cache"),
)
_CONFIGURES = Defines(KV_CACHE_CONFIGURATOR, f"{_CONFIGURATOR}._handle_max_mamba_cache")


def _variant(name: str, path: str, cls: str, method: str, code: str, *when: Shape) -> Variant:
    call = Anchor(f"rest_memory = self.{method}(rest_memory)", scope=f"{cls}.{_SCOPE}", within=_HYBRID)
    return Variant(
        name,
        when=when,
        edits=(InsertBefore(path, call, _CODE.body(code)),),
        contract=(
            Contract(SPEC_INFO, "SpeculativeAlgorithm.is_ddtree", ("self",)),
            Contract(DDTREE_ROOM, "refuse_too_many_states", ("holder", "room", "reserves_all")),
            Contract(path, f"{cls}._calculate_mamba_ratio", ("self",)),
        ),
    )


def _before(cls: str, method: str, first: str) -> str:
    return f"""\
class {cls}:
    def {_SCOPE}(self, rest_memory):
        if self.mambaish_config is not None:
            rest_memory = self.{method}(rest_memory)
        return rest_memory

    def {method}(self, total_rest_memory):
        {first} = 1

    def _calculate_mamba_ratio(self): ...
"""


def _after(before: str, code: str) -> str:
    call = "            rest_memory ="
    return before.replace(call, indented(_CODE.body(code), " " * 12) + call)


_FIRST_BEFORE = _before(_MIXIN, "handle_max_mamba_cache", "mamba_state_intermediate_size")
_MIXIN_BEFORE = _before(_MIXIN, "handle_max_mamba_cache", "intermediate_size")
_CONFIGURATOR_BEFORE = _before(_CONFIGURATOR, "_handle_max_mamba_cache", "intermediate_size")
_OTHERS = {
    SPEC_INFO: "class SpeculativeAlgorithm:\n    def is_ddtree(self): ...\n",
    DDTREE_ROOM: "def refuse_too_many_states(holder, room, *, reserves_all=False): ...\n",
}

STEP = Step(
    id="state-room",
    summary="a tree whose recurrent states have no room is refused, with the largest budget that has",
    why=(
        "A hybrid target keeps a state for every node of every running request, which is often more than its KV cache. "
        "SGLang reserves them by the verify width; where they do not fit it speaks of flags that DDTREE does not have, "
        "or fails later for want of anything left."
    ),
    requires=("enum", "runtime"),
    variants=(
        _variant(
            "mixin_reserves_all",
            KV_CACHE_MIXIN,
            _MIXIN,
            "handle_max_mamba_cache",
            "reserves_all",
            _FIRST,
            Lacks(_CONFIGURES),
        ),
        _variant(
            "mixin",
            KV_CACHE_MIXIN,
            _MIXIN,
            "handle_max_mamba_cache",
            "reserves_what_fits",
            HasFile(KV_CACHE_MIXIN),
            Lacks(_FIRST),
            Lacks(_CONFIGURES),
        ),
        _variant(
            "configurator",
            KV_CACHE_CONFIGURATOR,
            _CONFIGURATOR,
            "_handle_max_mamba_cache",
            "reserves_what_fits",
            _CONFIGURES,
        ),
    ),
    cases=(
        Case(
            "mixin_reserves_all",
            {KV_CACHE_MIXIN: _FIRST_BEFORE, **_OTHERS},
            {KV_CACHE_MIXIN: _after(_FIRST_BEFORE, "reserves_all")},
        ),
        Case(
            "mixin",
            {KV_CACHE_MIXIN: _MIXIN_BEFORE, **_OTHERS},
            {KV_CACHE_MIXIN: _after(_MIXIN_BEFORE, "reserves_what_fits")},
        ),
        Case(
            "configurator",
            {KV_CACHE_CONFIGURATOR: _CONFIGURATOR_BEFORE, **_OTHERS},
            {KV_CACHE_CONFIGURATOR: _after(_CONFIGURATOR_BEFORE, "reserves_what_fits")},
        ),
    ),
    refusals=(
        Refusal(
            {KV_CACHE_MIXIN: _MIXIN_BEFORE.replace("rest_memory = self.", "memory = self."), **_OTHERS},
            StepOutcome.ANCHOR_MISSING,
        ),
        Refusal(
            {KV_CACHE_MIXIN: _MIXIN_BEFORE.replace("_mamba_ratio(self)", "_ratio(self)"), **_OTHERS},
            StepOutcome.PRECONDITION_FAILED,
        ),
        Refusal({KV_CACHE_MIXIN: _MIXIN_BEFORE, SPEC_INFO: _OTHERS[SPEC_INFO]}, StepOutcome.PRECONDITION_FAILED),
    ),
)
