"""The real scheduler with its models and KV pools, in this process, stepped from outside.

Only what crosses the process border is replaced: requests are handed over instead of received from a socket, and
answers are kept instead of sent. One engine a process: SGLang keeps global state.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import release
from .flags import preload
from .pools import Balance, PoolWatch

BatchHook = Callable[[Any], None]  # takes SGLang's ScheduleBatch
# Takes the batch and, for those of its requests that a verify step was counted for, by place the tokens they emitted.
ResultsHook = Callable[[Any, Mapping[int, int]], None]

GREEDY: Mapping[str, Any] = {"temperature": 0.0, "ignore_eos": True}


class Stuck(RuntimeError):
    """Requests did not finish within the steps that they were given."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of the engine. ``sampling`` holds SGLang's own sampling parameters, over greedy and no stop."""

    name: str  # no name may begin with another's: SGLang aborts by prefix
    ids: Sequence[int]
    max_new_tokens: int = 8
    sampling: Mapping[str, Any] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)  # of the message, such as return_logprob


@dataclass(frozen=True, slots=True)
class Answer:
    """How one request ended, and how it got there."""

    name: str
    output: list[int]  # the tokens that its user gets
    logprobs: list[float]  # of these tokens; empty unless they were asked for
    finish: str  # "length", "stop" or "abort"
    message: str  # of an abort or a refusal; empty otherwise
    accept_lengths: list[int]  # tokens emitted in each verify step, the bonus token among them
    verify_count: int  # as SGLang counts: target forwards in decoding
    accepted_drafts: int  # as SGLang counts: draft tokens accepted, over all steps
    cut: int  # of those, accepted in the last step beyond the request's end and not emitted; 0 where SGLang counts none
    cached_tokens: int  # of the prompt, found in the radix cache
    retractions: int


class Engine:
    """Started from a server's flags; refuses as the server does (``SystemExit``, ``ValueError`` …).

    ``rank`` is that of a tensor-parallel group, each rank of which is an engine in a process of its own. All are given
    the same requests and make the same steps; rank 0 alone sends answers.
    """

    def __init__(self, flags: Sequence[str], rank: int = 0) -> None:
        preload()
        self.logs = _capture_logs()
        self.before_batch: list[BatchHook] = []
        self.after_batch: list[BatchHook] = []  # it ran; what it emits may not be known on the host yet
        self.after_results: list[ResultsHook] = []  # its requests have its tokens, in the order in which batches ran
        self.requests: dict[str, Any] = {}  # SGLang's own, by name
        self.answers: dict[str, Answer] = {}
        self.batches = 0  # that were run: prefills and decode steps
        self._open: set[str] = set()
        self._ended: dict[str, Mapping[str, Any]] = {}  # in this step, and why
        self._inbox: list[Any] = []
        self._outputs: dict[str, list[int]] = {}
        self._logprobs: dict[str, list[float]] = {}
        self._ran: deque[dict[int, int]] = deque()  # what batches emitted whose results wait to be processed
        self._accept_lengths: dict[str, list[int]] = {}
        self._cut: dict[str, int] = {}
        self._retractions: dict[str, int] = {}
        release.redirect_output(self._receive_output)
        self.server_args = release.resolve(flags)
        self.scheduler = release.start_scheduler(self.server_args, rank)
        self._loop = release.Loop(self.scheduler)
        self._watch_scheduler()
        self.pools = PoolWatch(self.scheduler)

    @property
    def worker(self) -> Any:
        """The draft worker; None without speculation."""
        return release.draft_worker(self.scheduler)

    def submit(self, *requests: Request) -> None:
        """They are received in the next step."""
        for request in requests:
            sampling = {**GREEDY, "max_new_tokens": request.max_new_tokens, **request.sampling}
            self._inbox.append(release.generate_input(request.name, request.ids, sampling, dict(request.fields)))
            self._open.add(request.name)

    def abort(self, name: str) -> None:
        """Asked for in the next step."""
        self._inbox.append(release.abort_input(name))

    def step(self) -> None:
        """One iteration of the scheduler's loop: at most one batch; with overlap, the results of the one before."""
        received, self._inbox = self._inbox, []
        self._loop.iterate(received)
        while self._ended:
            self._answer(*self._ended.popitem())

    @property
    def busy(self) -> bool:
        """Whether a request has no answer yet."""
        return bool(self._open)

    def run(self, limit: int = 500) -> dict[str, Answer]:
        """Steps until every request has its answer and the scheduler is idle; all answers so far, by name."""
        for _ in range(limit):
            if not self.busy and self.scheduler.last_batch is None:  # with overlap, one batch too many has run
                self.step()  # an idle one, in which SGLang checks its pools
                return self.answers
            self.step()
        raise Stuck(f"after {limit} steps there is no answer to {sorted(self._open)}")

    def generate(self, *requests: Request) -> list[Answer]:
        """Runs these together; their answers in the same order."""
        self.submit(*requests)
        self.run()
        return [self.answers[request.name] for request in requests]

    def balance(self) -> Balance:
        """Where the KV slots are, between two steps."""
        return self.pools.balance(self.requests.values())

    def _watch_scheduler(self) -> None:
        scheduler = self.scheduler
        upstream_add, upstream_run = scheduler._add_request_to_queue, scheduler.run_batch
        upstream_process = scheduler.process_batch_result

        def add(request: Any, is_retracted: bool = False) -> None:
            self.requests[request.rid] = request
            self._retractions[request.rid] = self._retractions.get(request.rid, 0) + is_retracted
            upstream_add(request, is_retracted)

        def run(batch: Any, *args: Any, **kwargs: Any) -> Any:
            _call(self.before_batch, batch)
            counts = _counts(batch.reqs)
            result = upstream_run(batch, *args, **kwargs)
            self.batches += 1
            self._ran.append(_emitted(batch.reqs, counts))
            _call(self.after_batch, batch)
            return result

        def process(batch: Any, result: Any, *args: Any, **kwargs: Any) -> None:
            counts = _counts(batch.reqs)
            upstream_process(batch, result, *args, **kwargs)
            emitted = {**self._ran.popleft(), **_emitted(batch.reqs, counts)}  # one of the two has them
            self._note(batch.reqs, emitted, release.verified_lengths(result))
            for hook in self.after_results:
                hook(batch, emitted)

        scheduler._add_request_to_queue = add
        scheduler.run_batch, scheduler.process_batch_result = run, process

    def _note(self, requests: Sequence[Any], emitted: Mapping[int, int], verified: Sequence[int] | None) -> None:
        for place, tokens in emitted.items():
            name = requests[place].rid
            self._accept_lengths.setdefault(name, []).append(tokens)
            self._cut[name] = verified[place] - tokens if verified else 0

    def _receive_output(self, output: Any) -> None:
        if type(output).__name__ == "AbortReq":  # of a request that was waiting, or could not be kept
            self._end(output.rid, output.finished_reason or {"type": "abort", "message": "aborted while it waited"})
        for index, name in enumerate(getattr(output, "rids", None) or ()):
            self._outputs.setdefault(name, []).extend(output.output_ids[index])
            self._logprobs.setdefault(name, []).extend((output.output_token_logprobs_val or {index: ()})[index])
            if output.finished_reasons[index] is not None:
                self._end(name, output.finished_reasons[index])

    def _end(self, name: str, reason: Mapping[str, Any]) -> None:
        self._open.discard(name)
        self._ended[name] = reason

    def _answer(self, name: str, reason: Mapping[str, Any]) -> None:
        """When all is counted: the answer is sent while the results of its last batch are still being processed."""
        request = self.requests[name]
        self.answers[name] = Answer(
            name=name,
            output=self._outputs.get(name, []),
            logprobs=self._logprobs.get(name, []),
            finish=reason["type"],
            message=reason.get("message") or "",
            accept_lengths=self._accept_lengths.get(name, []),
            verify_count=request.spec_verify_ct,
            accepted_drafts=release.accepted_drafts(request),
            cut=self._cut.get(name, 0),
            cached_tokens=request.cached_tokens,
            retractions=self._retractions[name],
        )


class LogCapture(logging.Handler):
    """Keeps what SGLang logs, as ``LEVEL message`` lines."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.getMessage()}")


def _capture_logs() -> LogCapture:
    handler = LogCapture()
    logger = logging.getLogger("sglang")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    return handler


def _counts(requests: Sequence[Any]) -> list[tuple[int, int]]:
    """Of every request: its verify steps, and the tokens that it has."""
    return [(request.spec_verify_ct, len(request.output_ids_through_stop)) for request in requests]


def _emitted(requests: Sequence[Any], before: Sequence[tuple[int, int]]) -> dict[int, int]:
    """The tokens that requests have more than before, by place, of those that a verify step was counted for."""
    pairs = enumerate(zip(_counts(requests), before, strict=True))
    return {place: now[1] - then[1] for place, (now, then) in pairs if now[0] > then[0]}


def _call(hooks: Iterable[BatchHook], batch: Any) -> None:
    for hook in hooks:
        hook(batch)
