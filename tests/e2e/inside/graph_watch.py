"""Sees what a release's own graph runner captures and replays, on any device."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Captured:
    """What one graph was captured with."""

    role: str  # "target" or "draft"
    batch_size: int
    rows: int  # of each request, in the model's input
    width: int  # of the verify input: rows of each request, as attention is told
    mask: str  # of the verify input: "none", "runner" for the runner's buffer, "other"
    attention_masks: bool  # whether the attention kernels were launched with a mask


def expected_graphs(sizes: Sequence[int], block: int, width: int = 0) -> list[dict[str, Any]]:
    """What must be captured: on the target ``width`` rows with a mask, or (0) a block without; on the drafter a block.

    ``sizes`` are the batches that graphs are captured for.
    """
    wanted = (("target", width or block, bool(width)), ("draft", block, False))
    return [
        asdict(Captured(role, size, rows, rows, "runner" if mask else "none", mask))
        for role, rows, mask in wanted
        for size in sizes
    ]


@dataclass(frozen=True, slots=True)
class Step:
    """One decode step: how many requests it has, and the batch sizes of the graphs that were replayed for it."""

    requests: int
    target: list[int] = field(default_factory=list)
    draft: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class GraphRunner:
    """Where a release has what captures and replays decode steps."""

    cls: Any
    capture: str  # its method for one batch size
    replay: str  # its method for one batch
    init: str  # ModelRunner's method in which the graphs of a GPU are captured
    holder: str  # ModelRunner's attribute for the graph runner
    flags: tuple[str, ...]  # of a server that has graphs of decode steps alone; the batch sizes follow


def graph_runner() -> GraphRunner:
    """That of the release which is loaded."""
    try:
        module = importlib.import_module("sglang.srt.model_executor.runner.decode_cuda_graph_runner")
    except ModuleNotFoundError:
        module = importlib.import_module("sglang.srt.model_executor.cuda_graph_runner")
        return GraphRunner(
            cls=module.CudaGraphRunner,
            capture="capture_one_batch_size",
            replay="replay",
            init="init_device_graphs",
            holder="graph_runner",
            flags=("--disable-piecewise-cuda-graph", "--cuda-graph-bs"),
        )
    return GraphRunner(
        cls=module.DecodeCudaGraphRunner,
        capture="capture_one_shape",
        replay="execute",
        init="init_cuda_graphs",
        holder="decode_cuda_graph_runner",
        flags=("--cuda-graph-backend-decode=full", "--cuda-graph-backend-prefill=disabled", "--cuda-graph-bs-decode"),
    )


class GraphWatch:
    """Watches all graph runners that are made from now on."""

    def __init__(self, runner: GraphRunner) -> None:
        self.captured: list[Captured] = []
        self.steps: list[Step] = []
        self._replayed: list[tuple[str, int]] = []
        self._watch_captures(runner)
        self._watch_replays(runner)

    def take_replayed(self) -> list[tuple[str, int]]:
        """Role and batch size of every graph that was replayed since this was last asked, in order."""
        replayed, self._replayed = self._replayed, []
        return replayed

    def note_step(self, batch: Any) -> None:
        """A hook for batches that ran. One that decodes is a verification by then; a prefill replays nothing."""
        replayed = self.take_replayed()
        if batch.forward_mode.is_extend() and not batch.forward_mode.is_target_verify():
            assert not replayed
            return
        sizes = {role: [size for other, size in replayed if other == role] for role in ("target", "draft")}
        self.steps.append(Step(len(batch.reqs), **sizes))

    def _watch_captures(self, release: GraphRunner) -> None:
        upstream = getattr(release.cls, release.capture)

        def capture(runner: Any, size: int, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            seen: list[tuple[int, Any]] = []

            @functools.wraps(forward)  # its parameters are looked at
            def watched(input_ids: Any, positions: Any, forward_batch: Any, **more: Any) -> Any:
                seen.append((len(input_ids), forward_batch.spec_info))
                return forward(input_ids, positions, forward_batch, **more)

            result = upstream(runner, size, watched, *args, **kwargs)
            if seen[-1][1] is not None:  # it is in plain decoding
                self.captured.append(_describe(runner, size, *seen[-1]))
            return result

        setattr(release.cls, release.capture, capture)

    def _watch_replays(self, release: GraphRunner) -> None:
        upstream = getattr(release.cls, release.replay)

        def replay(runner: Any, *args: Any, **kwargs: Any) -> Any:
            output = upstream(runner, *args, **kwargs)
            self._replayed.append((_role(runner), int(runner.bs)))
            return output

        setattr(release.cls, release.replay, replay)


def _role(runner: Any) -> str:
    return "draft" if runner.model_runner.is_draft_worker else "target"


def _describe(runner: Any, size: int, tokens: int, spec_info: Any) -> Captured:
    mask = spec_info.custom_mask
    assert tokens % size == 0
    return Captured(
        role=_role(runner),
        batch_size=size,
        rows=tokens // size,
        width=int(spec_info.draft_token_num),
        mask="none" if mask is None else "runner" if mask is runner.buffers.custom_mask else "other",
        attention_masks=_masks(runner.attn_backend.forward_metadata),
    )


def _masks(metadata: Any) -> bool:
    """Triton's backend says so itself; each wrapper of FlashInfer's that was made with a buffer for masks reads it."""
    if hasattr(metadata, "custom_mask"):
        return metadata.custom_mask is not None
    return any(wrapper._custom_mask_buf is not None for wrapper in metadata.prefill_wrappers)
