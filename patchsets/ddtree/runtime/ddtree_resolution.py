"""How this release resolves server arguments: what was decided so far, and how a decision is written down.

At first SGLang decided by assigning fields. From 0.5.15 on some decisions are declarations beside the arguments, which
a view lays over them, and from 0.5.19 on all of them are. Told apart by what can be imported, never by version strings.
"""

from __future__ import annotations

import importlib.util
from typing import Any


def view_of(server_args: Any) -> Any:
    """The arguments as they were resolved so far. To be asked for again after a decision."""
    try:
        from sglang.srt.arg_groups import overrides
    except ImportError:
        return server_args
    view = getattr(overrides, "resolving_view", None) or overrides.resolved_view
    return view(server_args)


def decide(server_args: Any, **fields: Any) -> None:
    """Set fields while the arguments are being resolved; what is set last counts."""
    try:
        from sglang.srt.arg_groups.overrides import declare_resolution
    except ImportError:
        for name, value in fields.items():
            setattr(server_args, name, value)
    else:
        declare_resolution(server_args, "DDTREE", **fields)


def model_config_of(server_args: Any) -> Any:
    """The target's configuration, read once."""
    try:
        from sglang.srt.arg_groups.overrides import model_config_of as read
    except ImportError:
        return server_args.get_model_config()
    return read(server_args)


def uses_mla(server_args: Any) -> bool:
    """Whether the target has multi-head latent attention."""
    return bool(model_config_of(server_args).attention_arch.name == "MLA")


def verify_backend_of(server_args: Any) -> str | None:
    """The backend that runs the target's verify forward; None while nobody has chosen one."""
    view = view_of(server_args)
    own = f"{'decode' if view.speculative_attention_mode == 'decode' else 'prefill'}_attention_backend"
    chosen: str | None = getattr(view, own) or view.attention_backend
    return chosen


def has_mamba_extra_buffer(server_args: Any) -> bool:
    """Whether the radix cache keeps states of recurrent layers in buffers of their own."""
    try:
        from sglang.srt.arg_groups.overrides import mamba_extra_buffer_of
    except ImportError:
        return bool(server_args.enable_mamba_extra_buffer())
    return bool(mamba_extra_buffer_of(view_of(server_args)))


def moves_kv_cache() -> bool:
    """Whether the worker moves accepted entries of the KV cache; the first one, ``dflash_worker.py``, does not."""
    return importlib.util.find_spec("sglang.srt.speculative.dflash_worker") is None
