"""How a server refuses to start, and a request that it can only refuse where there is a tokenizer."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import scenarios
from ddtree_patch_probe import release
from ddtree_patch_probe.engine import Request
from ddtree_patch_probe.flags import DDTREE, server_flags
from ddtree_patch_probe.models import TinyModels


def start(flags: Sequence[str] = (), models: dict[str, Any] | None = None) -> dict[str, str]:
    """Where it ended, ``arguments`` or ``engine``, and what its user reads; ``nowhere`` where it would have started.

    In ``arguments`` no model has been loaded, and no process started.
    """
    checkpoints = TinyModels(**(models or {})).write(tempfile.mkdtemp())
    resolve = partial(release.resolve, server_flags(checkpoints, DDTREE, flags))
    return (
        _refusal("arguments", resolve)
        or _refusal("engine", lambda: release.start_scheduler(resolve()))
        or {"place": "nowhere", "message": ""}
    )


def resolve_each(cases: dict[str, list[str]]) -> dict[str, dict[str, str]]:
    """The same of each case's flags, as far as arguments go."""
    checkpoints = TinyModels().write(tempfile.mkdtemp())
    started = {"place": "nowhere", "message": ""}
    return {
        case: _refusal("arguments", partial(release.resolve, server_flags(checkpoints, DDTREE, flags))) or started
        for case, flags in cases.items()
    }


def _refusal(place: str, action: Callable[[], object]) -> dict[str, str] | None:
    """What is refused by an action, and where that is."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            action()
    except SystemExit:  # argparse has printed its reason
        return {"place": place, "message": said.getvalue().strip().splitlines()[-1]}
    except (ValueError, RuntimeError) as error:
        return {"place": place, "message": str(error)}
    return None


def answer_with_a_tokenizer(requests: list[dict[str, Any]], flags: Sequence[str] = ()) -> dict[str, Any]:
    """The message and the tokens of every request, in a server that looks at its tokenizer.

    Without one, SGLang dies of every request with ``min_new_tokens``, a refused one too.
    """
    engine = scenarios.start(DDTREE, flags)
    engine.scheduler.tokenizer = SimpleNamespace(eos_token_id=0, additional_stop_token_ids=None)
    answers = engine.generate(*(Request(**fields) for fields in requests))
    assert engine.balance().adds_up, engine.balance()
    return {answer.name: {"message": answer.message, "output": answer.output} for answer in answers}
