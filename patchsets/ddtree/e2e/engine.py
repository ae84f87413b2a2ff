"""The real scheduler with its models and KV pools, in this process, stepped from outside.

Only what crosses the process border is replaced: requests are handed over instead of received from a socket, and
answers are kept instead of sent. One engine a process: SGLang keeps global state.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import release, shims
from .flags import has_gpu
from .pools import Balance, PoolWatch

BatchHook = Callable[[Any], None]  # takes SGLang's ScheduleBatch

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
    finish: str  # "length", "stop" or "abort"
    message: str  # of an abort or a refusal; empty otherwise
    accept_lengths: list[int]  # tokens emitted in each verify step, the bonus token among them
    verify_count: int  # as SGLang counts: target forwards in decoding
    accepted_drafts: int  # as SGLang counts: draft tokens emitted, over all steps
    cached_tokens: int  # of the prompt, found in the radix cache
    retractions: int


class Engine:
    """Started from a server's flags; refuses as the server does (``SystemExit``, ``ValueError`` …)."""

    def __init__(self, flags: Sequence[str]) -> None:
        self.logs = _capture_logs()
        if not has_gpu():
            shims.draft_in_its_own_dtype()
        self.before_batch: list[BatchHook] = []
        self.after_batch: list[BatchHook] = []  # its outputs are not processed yet, but for verified tokens
        self.requests: dict[str, Any] = {}  # SGLang's own, by name
        self.answers: dict[str, Answer] = {}
        self.batches = 0  # that were run: prefills and decode steps
        self._open: set[str] = set()
        self._inbox: list[Any] = []
        self._outputs: dict[str, list[int]] = {}
        self._accept_lengths: dict[str, list[int]] = {}
        self._retractions: dict[str, int] = {}
        release.redirect_output(self._receive_output)
        self.server_args = release.resolve(flags)
        self.scheduler = release.start_scheduler(self.server_args)
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
        """One iteration of the scheduler's loop: at most one batch."""
        received, self._inbox = self._inbox, []
        self._loop.iterate(received)

    @property
    def busy(self) -> bool:
        """Whether a request has no answer yet."""
        return bool(self._open)

    def run(self, limit: int = 500) -> dict[str, Answer]:
        """Steps until every request has its answer and the scheduler is idle; all answers so far, by name."""
        for _ in range(limit):
            if not self.busy:
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

        def add(request: Any, is_retracted: bool = False) -> None:
            self.requests[request.rid] = request
            self._retractions[request.rid] = self._retractions.get(request.rid, 0) + is_retracted
            upstream_add(request, is_retracted)

        def run(batch: Any, *args: Any, **kwargs: Any) -> Any:
            _call(self.before_batch, batch)
            before = {request.rid: (request.spec_verify_ct, len(request.output_ids)) for request in batch.reqs}
            result = upstream_run(batch, *args, **kwargs)
            self.batches += 1
            self._count_accepted(batch.reqs, before)
            _call(self.after_batch, batch)
            return result

        scheduler._add_request_to_queue, scheduler.run_batch = add, run

    def _count_accepted(self, requests: Iterable[Any], before: Mapping[str, tuple[int, int]]) -> None:
        for request in requests:
            verified, length = before[request.rid]
            if request.spec_verify_ct > verified:
                lengths = self._accept_lengths.setdefault(request.rid, [])
                lengths.append(len(request.output_ids) - length)

    def _receive_output(self, output: Any) -> None:
        if type(output).__name__ == "AbortReq":  # of a request that was waiting, or could not be kept
            self._close(output.rid, output.finished_reason or {"type": "abort", "message": "aborted while it waited"})
        for index, name in enumerate(getattr(output, "rids", None) or ()):
            self._outputs.setdefault(name, []).extend(output.output_ids[index])
            if output.finished_reasons[index] is not None:
                self._close(name, output.finished_reasons[index])

    def _close(self, name: str, reason: Mapping[str, Any]) -> None:
        request = self.requests[name]
        self._open.discard(name)
        self.answers[name] = Answer(
            name=name,
            output=self._outputs.get(name, []),
            finish=reason["type"],
            message=reason.get("message") or "",
            accept_lengths=self._accept_lengths.get(name, []),
            verify_count=request.spec_verify_ct,
            accepted_drafts=release.accepted_drafts(request),
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


def _call(hooks: Iterable[BatchHook], batch: Any) -> None:
    for hook in hooks:
        hook(batch)
