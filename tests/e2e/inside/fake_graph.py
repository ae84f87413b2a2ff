"""A CUDA graph for the CPU: remembers every kernel that is launched while it is captured, with the memory it works on.

A replay launches the same kernels on the same memory again, and runs no line of the model's Python. So what was decided
while capturing stays decided, such as whether attention reads a mask, and what a replay is to see must be in the
captured buffers: as on a GPU.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves

_captures: list[FakeGraph] = []  # the graph that is being captured, if one is


class FakeGraph:
    """Stands in for ``torch.cuda.CUDAGraph``."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._launches: list[Callable[[], object]] = []

    def replay(self) -> None:
        with torch.inference_mode():
            for launch in self._launches:
                launch()

    def add(self, launch: Callable[[], object]) -> None:
        self._launches.append(launch)

    def reset(self) -> None:
        self._launches.clear()


@contextlib.contextmanager
def capture(cuda_graph: FakeGraph, **_: Any) -> Iterator[None]:
    """Stands in for ``torch.cuda.graph``."""
    _captures.append(cuda_graph)
    try:
        with _Recorder(cuda_graph):
            yield
    finally:
        _captures.pop()


def is_capturing() -> bool:
    return bool(_captures)


def provide() -> None:
    """The CPU has graphs from now on, where SGLang looks for a device's: one call for each process."""
    device: Any = torch.cpu
    device.graph, device.graph_pool_handle = capture, object
    device.is_current_stream_capturing = is_capturing
    torch.cuda.CUDAGraph = FakeGraph  # type: ignore[assignment,misc]
    _record_triton()


class _Recorder(TorchDispatchMode):
    """Adds every operator of PyTorch to a graph, but for those that only look at memory in another way."""

    def __init__(self, graph: FakeGraph) -> None:
        super().__init__()
        self._graph = graph

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        if torch.Tag.data_dependent_output in func.tags or torch.Tag.dynamic_output_shape in func.tags:
            raise RuntimeError(f"operation not permitted when stream is capturing: {func} makes the host wait")
        launch = partial(func, *args, **(kwargs or {}))
        result = launch()
        known = {_memory(tensor) for tensor in _tensors((args, kwargs))}
        made = [tensor for tensor in _tensors(result) if _memory(tensor) not in known]
        if made:
            self._graph.add(partial(_write_again, launch, _tensors(result), known))
        elif func._schema.is_mutable:
            self._graph.add(launch)
        return result


def _write_again(launch: Callable[[], Any], results: list[torch.Tensor], known: set[int]) -> None:
    """What an operator makes anew belongs where it was when captured."""
    for old, new in zip(results, _tensors(launch()), strict=True):
        if _memory(old) not in known:
            old.copy_(new)


def _tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _record_triton() -> None:
    """Kernels of Triton's interpreter are launched past PyTorch's operators."""
    from triton.runtime.interpreter import GridExecutor

    upstream = GridExecutor.__call__

    def launch(executor: Any, *args: Any, **kwargs: Any) -> None:
        if _captures:
            _captures[-1].add(partial(upstream, executor, *args, **kwargs))
        with _disable_current_modes():
            upstream(executor, *args, **kwargs)

    GridExecutor.__call__ = launch
