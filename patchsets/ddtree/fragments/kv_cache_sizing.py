"""Goes to where a release sizes its pools, before it makes room for recurrent states.

That is ``ModelRunnerKVCacheMixin._profile_available_bytes`` in ``model_runner_kv_cache_mixin.py``, from 0.5.16 on
``KVCacheConfigurator._profile_available_bytes`` in ``kv_cache_configurator.py``.
"""

from __future__ import annotations

from typing import Any


def reserves_all(self: Any, rest_memory: float) -> None:
    """0.5.11 to 0.5.12.post1: before ``rest_memory = self.handle_max_mamba_cache(rest_memory)``."""
    if self.spec_algorithm.is_ddtree():
        from sglang.srt.speculative.ddtree_room import refuse_too_many_states

        refuse_too_many_states(self, rest_memory, reserves_all=True)


def reserves_what_fits(self: Any, rest_memory: float) -> None:
    """From 0.5.13 on: at the same place."""
    if self.spec_algorithm.is_ddtree():
        from sglang.srt.speculative.ddtree_room import refuse_too_many_states

        refuse_too_many_states(self, rest_memory)
