"""Where releases of SGLang differ in what the driver touches: names, and how the scheduler receives and sends.

Told apart by what is there, never by version strings. Served: the scheduler that processes a batch before it takes the
next one (0.5.11 to 0.5.13.post1). A later release, whose scheduler overlaps the two, needs another ``Loop``.
"""

from __future__ import annotations

import argparse
import inspect
from array import array
from collections.abc import Callable, Sequence
from typing import Any


class OutOfStep(BaseException):
    """Leaves the scheduler's loop where it would begin its next iteration; not an error that the loop could catch."""


class Loop:
    """The scheduler's own event loop, entered for one iteration at a time."""

    def __init__(self, scheduler: Any) -> None:
        if scheduler.enable_overlap:
            raise NotImplementedError("this driver steps a scheduler that does not overlap; another Loop is needed")
        self._scheduler = scheduler
        self._inbox: list[Any] | None = None
        receiver = scheduler if hasattr(scheduler, "recv_requests") else scheduler.request_receiver
        _replace_method(type(receiver), "recv_requests", lambda receiver: self._receive())

    def iterate(self, received: list[Any]) -> None:
        """One iteration: takes what was received, runs at most one batch and processes its results."""
        self._inbox = received
        try:
            self._scheduler.event_loop_normal()
        except OutOfStep:
            return
        raise RuntimeError("the scheduler left its loop by itself")

    def _receive(self) -> list[Any]:
        if self._inbox is None:
            raise OutOfStep
        received, self._inbox = self._inbox, None
        return received


def resolve(flags: Sequence[str]) -> Any:
    """The server's arguments as its command line makes them; argparse and ServerArgs refuse as they always do."""
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    return ServerArgs.from_cli_args(parser.parse_args(list(flags)))


def start_scheduler(server_args: Any) -> Any:
    """A scheduler with its models loaded, rank 0 of 1."""
    from sglang.srt.managers.scheduler import Scheduler
    from sglang.srt.server_args import PortArgs, set_global_server_args_for_scheduler

    set_global_server_args_for_scheduler(server_args)
    ranks = dict.fromkeys(inspect.signature(Scheduler.__init__).parameters, 0)
    for name in ("self", "server_args", "port_args"):
        del ranks[name]
    return Scheduler(server_args, PortArgs.init_new(server_args), **{**ranks, "dp_rank": None})


def redirect_output(outbox: Callable[[Any], None]) -> None:
    """The output of schedulers that are made from now on goes to ``outbox`` and not into a socket."""
    from sglang.srt.managers import scheduler

    def send_output(self: object, output: Any, *args: object) -> None:
        outbox(output)

    if hasattr(scheduler, "SenderWrapper"):
        _replace_method(scheduler.SenderWrapper, "send_output", send_output)
    else:
        from sglang.srt.managers.scheduler_components import output_sender

        _replace_method(output_sender.SenderWrapper, "send_output", send_output)


def generate_input(name: str, ids: Sequence[int], sampling: dict[str, Any], fields: dict[str, Any]) -> Any:
    """The message that asks for a generation; ``fields`` are set in it besides."""
    from sglang.srt.managers.io_struct import TokenizedGenerateReqInput
    from sglang.srt.sampling.sampling_params import SamplingParams

    parameters = SamplingParams(**sampling)
    parameters.normalize(None)
    wants_array = "array" in str(TokenizedGenerateReqInput.__annotations__["input_ids"])
    return TokenizedGenerateReqInput(
        **{
            "rid": name,
            "input_text": "",
            "input_ids": array("q", ids) if wants_array else list(ids),
            "mm_inputs": None,
            "sampling_params": parameters,
            "return_logprob": False,
            "logprob_start_len": -1,
            "top_logprobs_num": 0,
            "token_ids_logprob": None,
            "stream": False,
            **fields,
        }
    )


def abort_input(name: str) -> Any:
    from sglang.srt.managers.io_struct import AbortReq

    return AbortReq(rid=name)


def accepted_drafts(request: Any) -> int:
    """Draft tokens of this request that were emitted, over all its verify steps."""
    return int(_first(request, "spec_accepted_drafts", "spec_num_correct_drafts", "spec_accepted_tokens"))


def bonus_tokens(draft_input: Any) -> Any:
    """Per request the last emitted token, which is not in the KV cache yet: the root of the next tree."""
    return _first(draft_input, "verified_id", "bonus_tokens")


def draft_worker(scheduler: Any) -> Any:
    """The worker that drafts and verifies; None without speculation."""
    return getattr(scheduler, "draft_worker", None)


def _first(holder: Any, *names: str) -> Any:
    for name in names:
        if hasattr(holder, name):
            return getattr(holder, name)
    raise AttributeError(f"{type(holder).__name__} has none of {', '.join(names)}")


def _replace_method(owner: type, name: str, method: Callable[..., Any]) -> None:
    """In the class, as its instances may be frozen."""
    if not hasattr(owner, name):
        raise AttributeError(f"{owner.__name__} has no {name}: this release needs another way in")
    setattr(owner, name, method)
