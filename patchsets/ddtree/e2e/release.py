"""Where releases of SGLang differ in what the driver touches: names, and how the scheduler receives and sends.

Told apart by what is there, never by version strings. Served: 0.5.11 to 0.5.23, with a scheduler that processes a batch
before it takes the next one, and with one that overlaps the two.
"""

from __future__ import annotations

import argparse
import inspect
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any


class OutOfStep(BaseException):
    """Leaves the scheduler's loop where it would begin its next iteration; not an error that the loop could catch."""


class Loop:
    """The scheduler's own event loop, entered for one iteration at a time.

    With overlap, the results of a batch are processed one iteration after it ran.
    """

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler
        self._inbox: list[Any] | None = None
        receiver = scheduler if hasattr(scheduler, "recv_requests") else scheduler.request_receiver
        _replace_method(type(receiver), "recv_requests", lambda _, *args, **kwargs: self._receive(*args, **kwargs))
        self._iteration = scheduler.event_loop_normal
        if scheduler.enable_overlap:
            _keep_results(type(scheduler))
            self._iteration = scheduler.event_loop_overlap
        self._leave(scheduler.run_event_loop)  # once, for the stream that it makes

    def iterate(self, received: list[Any]) -> None:
        """One iteration: takes what was received, runs at most one batch, processes its results or the last one's."""
        self._inbox = received
        with self._scheduler.device_module.StreamContext(self._scheduler.schedule_stream):
            self._leave(self._iteration)

    def _leave(self, loop: Callable[[], None]) -> None:
        try:
            loop()
        except OutOfStep:
            return
        raise RuntimeError("the scheduler left its loop by itself")

    def _receive(self, local_reqs: Sequence[Any] | None = None) -> list[Any]:
        if self._inbox is None:
            raise OutOfStep
        received, self._inbox = self._inbox, None
        return [*received, *(local_reqs or ())]


def _keep_results(owner: Any) -> None:
    """Results that wait to be processed outlive the loop, which begins with an empty queue whenever it is entered."""
    queue: deque[Any] = deque()
    owner.result_queue = property(lambda scheduler: queue, lambda scheduler, emptied: None)


def resolve(flags: Sequence[str]) -> Any:
    """The server's arguments as its command line makes them; argparse and ServerArgs refuse as they always do."""
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    server_args = ServerArgs.from_cli_args(parser.parse_args(list(flags)))
    if hasattr(server_args, "resolve_once"):
        server_args.resolve_once()
    return server_args


def start_scheduler(server_args: Any, rank: int = 0) -> Any:
    """A scheduler with its models loaded, of this rank of its tensor-parallel group; waits for the other ranks."""
    from sglang.srt.managers import scheduler
    from sglang.srt.server_args import PortArgs

    _publish(server_args, scheduler, rank)
    ranks: dict[str, int | None] = dict.fromkeys(inspect.signature(scheduler.Scheduler.__init__).parameters, 0)
    for name in ("self", "server_args", "port_args"):
        del ranks[name]
    own = {"dp_rank": None, "tp_rank": rank, "gpu_id": rank}
    ranks |= {name: value for name, value in own.items() if name in ranks}
    return scheduler.Scheduler(server_args, PortArgs.init_new(server_args), **ranks)


def _publish(server_args: Any, scheduler: ModuleType, rank: int) -> None:
    """Makes these arguments those of the process, as whoever starts a scheduler's process does."""
    if hasattr(scheduler, "SpawnRanks"):
        ranks = scheduler.SpawnRanks(world_rank=rank, dp_rank=None, gpu_id=rank)
        scheduler.publish(server_args, role="scheduler", ranks=ranks)
    else:
        from sglang.srt.server_args import set_global_server_args_for_scheduler

        set_global_server_args_for_scheduler(server_args)


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
    message = {
        "rid": name,
        "input_text": "",
        "input_ids": array("q", ids) if wants_array else list(ids),
        "input_embeds": None,
        "mm_inputs": None,
        "token_type_ids": None,
        "sampling_params": parameters,
        "return_logprob": False,
        "logprob_start_len": -1,
        "top_logprobs_num": 0,
        "token_ids_logprob": None,
        "stream": False,
        **fields,
    }
    known = inspect.signature(TokenizedGenerateReqInput).parameters
    return TokenizedGenerateReqInput(**{field: value for field, value in message.items() if field in known})


def abort_input(name: str) -> Any:
    from sglang.srt.managers.io_struct import AbortReq

    return AbortReq(rid=name)


def kv_span(request: Any) -> tuple[int, int, int] | None:
    """The request's row in the table of slots, and from where to where its own are in it; None where it has none."""
    row, start, end = (_of_kv(request, name) for name in ("req_pool_idx", "cache_protected_len", "kv_allocated_len"))
    return (int(row), int(start or 0), int(end)) if row is not None and end else None


def committed_len(request: Any) -> int:
    """How many positions of the request have their final KV in the cache."""
    return int(_of_kv(request, "kv_committed_len") or 0)


def _of_kv(request: Any, name: str) -> Any:
    """A field of the request, or of what it says about its KV; None where that has gone with its slots."""
    for holder in (request, getattr(request, "kv", None)):
        if hasattr(holder, name):
            return getattr(holder, name)
    return None


def free_pages(allocator: Any) -> list[int]:
    """The pages that the allocator may give out, at once or after it has sorted them."""
    if hasattr(allocator, "get_all_free_pages"):
        return list(allocator.get_all_free_pages().tolist())
    return [*allocator.free_pages.tolist(), *allocator.release_pages.tolist()]


def is_collecting_frees(allocator: Any) -> bool:
    """Whether slots that are freed wait in ``free_group`` for the end of their group."""
    return not getattr(allocator, "is_not_in_free_group", allocator.free_group is None)


def verified_lengths(result: Any) -> list[int] | None:
    """Tokens that each request's verify step decided on, its end not regarded; None where the result does not say."""
    lengths = getattr(result, "accept_lens", None)
    return None if lengths is None else [int(length) for length in lengths]


def accepted_drafts(request: Any) -> int:
    """Draft tokens of this request that were emitted, over all its verify steps."""
    return int(_first(request, "spec_accepted_drafts", "spec_num_correct_drafts", "spec_accepted_tokens"))


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
