"""Engines whose decode steps go through the release's own graph runner, with graphs that work on the CPU.

Replaced is what needs a GPU: the graph itself (``fake_graph``), and the two places where SGLang asks whether the device
has one. What is captured, how a batch is padded and loaded into the captured buffers, and what attention is told before
a replay is the release's code.
"""

from __future__ import annotations

import contextlib
import importlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import fake_graph
from ddtree_patch_probe.engine import Engine, Request
from ddtree_patch_probe.flags import server_flags
from ddtree_patch_probe.models import TinyModels
from graph_watch import GraphRunner, GraphWatch, graph_runner

SIZES = (1, 4)  # batch sizes that graphs are captured for; others are padded


def play(
    algorithm: str,
    rounds: Sequence[Sequence[dict[str, Any]]],
    flags: Sequence[str] = (),
    models: dict[str, Any] | None = None,
    plant: str = "",
) -> dict[str, Any]:
    """Runs each round's requests together. ``plant`` names a fault of ``PLANTS``, planted before the start.

    ``checked`` are the batch sizes of the graphs that the start-up self-check replayed.
    """
    runner = graph_runner()
    _open_the_way(runner)
    _avoid_masks()
    watch = GraphWatch(runner)
    if plant:
        PLANTS[plant](runner)
    checkpoints = TinyModels(**(models or {})).write(tempfile.mkdtemp())
    server = server_flags(checkpoints, algorithm, flags)
    server.remove("--disable-cuda-graph")
    engine = Engine([*server, *runner.flags, *map(str, SIZES)])
    checked = [size for _, size in watch.take_replayed()]
    engine.after_batch.append(watch.note_step)
    for requests in rounds:
        engine.generate(*(Request(**fields) for fields in requests))
    return {
        "outputs": {name: answer.output for name, answer in engine.answers.items()},
        "accept_lengths": {name: answer.accept_lengths for name, answer in engine.answers.items()},
        "captured": [asdict(captured) for captured in watch.captured],
        "steps": [asdict(step) for step in watch.steps],
        "checked": checked,
        "faults": list(engine.balance().faults),
    }


def _open_the_way(release: GraphRunner) -> None:
    """A model runner on the CPU captures where one on a GPU does, and replays what one on a GPU replays."""
    from sglang.srt.model_executor.forward_batch_info import ForwardMode
    from sglang.srt.model_executor.model_runner import ModelRunner

    upstream = getattr(ModelRunner, release.init)

    def init(runner: Any, *args: Any, capture_decode_cuda_graph: bool = True, **kwargs: Any) -> None:
        if not capture_decode_cuda_graph:
            kwargs["capture_decode_cuda_graph"] = False
        upstream(runner, *args, **kwargs)
        if capture_decode_cuda_graph:
            setattr(runner, release.holder, release.cls(runner))

    fake_graph.provide()
    setattr(ModelRunner, release.init, init)
    ForwardMode.is_cpu_graph = ForwardMode.is_cuda_graph
    with contextlib.suppress(ModuleNotFoundError):  # from 0.5.17 on: the CPU's own kernels would read another mask
        verify_mask: Any = importlib.import_module("sglang.srt.layers.attention.verify_mask")
        verify_mask.default_tree_mask_mode = lambda: verify_mask.TreeMaskMode.FULL_MASK


def _avoid_masks() -> None:
    """DFLASH captures no mask on this backend, as on FlashInfer; up to 0.5.13.post1 it does on Triton's."""
    utils: Any = importlib.import_module("sglang.srt.speculative.dflash_utils")
    utils._DFLASH_VERIFY_SKIP_CUSTOM_MASK_BACKENDS |= {"TritonAttnBackend"}


def _capture_as_for_a_chain(release: GraphRunner) -> None:
    """Graphs are captured as without the step that gives them a mask."""
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

    upstream, is_ddtree = release.cls.get_spec_info, SpeculativeAlgorithm.is_ddtree

    def get_spec_info(runner: Any, num_tokens: int) -> Any:
        SpeculativeAlgorithm.is_ddtree = lambda algorithm: False
        try:
            return upstream(runner, num_tokens)
        finally:
            SpeculativeAlgorithm.is_ddtree = is_ddtree

    release.cls.get_spec_info = get_spec_info


def _capture_too_wide(release: GraphRunner) -> None:
    """The drafter's graphs are captured with the rows of a tree, as without what narrows it."""
    _capture_width(is_draft=True, blocks=False)


def _capture_too_narrow(release: GraphRunner) -> None:
    """The target's graphs are captured with the rows of a block, as DFLASH's are."""
    _capture_width(is_draft=False, blocks=True)


def _capture_width(is_draft: bool, blocks: bool) -> None:
    """Whoever asks how wide a verify forward is, of the drafter or of the target, is told another width."""
    from sglang.srt.speculative.ddtree_args import verify_width
    from sglang.srt.speculative.ddtree_config import spec_config
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

    def change(upstream: Callable[..., int]) -> Callable[..., int]:
        def width(algorithm: Any, num_draft_tokens: int, is_draft_worker: bool) -> int:
            if is_draft_worker != is_draft:
                return upstream(algorithm, num_draft_tokens, is_draft_worker)
            block = int(spec_config().speculative_dflash_block_size)
            return block if blocks else verify_width(int(spec_config().speculative_ddtree_budget), block)

        return width

    hooks = [name for name in vars(SpeculativeAlgorithm) if name.endswith("_for_target_verify")]
    assert hooks
    for name in hooks:
        setattr(SpeculativeAlgorithm, name, change(getattr(SpeculativeAlgorithm, name)))


PLANTS: dict[str, Callable[[GraphRunner], None]] = {
    "no mask": _capture_as_for_a_chain,
    "wide drafter": _capture_too_wide,
    "narrow target": _capture_too_narrow,
}
