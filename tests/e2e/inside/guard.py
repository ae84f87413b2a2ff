"""Notices what would make the host wait for the device, or shapes depend on data, in a module's own code.

On the CPU nothing waits. So every tensor counts as the device's, but for those that are declared to be the host's and
what is computed of these alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# Methods that bring a tensor, or a number of it, to the host. Whatever else does is seen by its operator.
_READS = {"cpu", "item", "numpy", "tolist", "__array__", "__bool__", "__complex__", "__float__", "__index__", "__int__"}
_DEPENDS_ON_DATA = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
_BY_MASK = {"aten::index", "aten::index_put", "aten::index_put_"}  # where an index is one of truth values
_TORCH = str(Path(torch.__file__).parent)


class Guard(TorchFunctionMode):
    """While it is entered, lists the offences in code of files whose path holds ``where``, each with its line.

    Code is a file's own where the innermost frame outside PyTorch is in it: what it calls elsewhere is not.
    """

    def __init__(self, where: str) -> None:
        super().__init__()
        self.offences: list[str] = []
        self.seen = 0  # operations of that code
        self._where = where
        self._host: dict[int, torch.Tensor] = {}  # by identity; kept, so that no other tensor takes it
        self._operators = _Operators(self._offend)

    def declare_host(self, tensor: torch.Tensor | None) -> None:
        if tensor is not None:
            self._host[id(tensor)] = tensor

    def __enter__(self) -> Any:
        self._operators.__enter__()
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._operators.__exit__(*error)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        self.seen += bool(self._place())
        if "device" not in kwargs and self._of_the_host((args, kwargs)):
            with self._operators.allowed():
                result = func(*args, **kwargs)
            for leaf in tree_leaves(result):
                if isinstance(leaf, torch.Tensor):
                    self.declare_host(leaf)
            return result
        name = getattr(func, "__name__", "")
        if name in _READS or (name == "to" and _names_the_host(args, kwargs)):
            self._offend(f"Tensor.{name}")
        return func(*args, **kwargs)

    def _of_the_host(self, values: Any) -> bool:
        tensors = [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]
        return bool(tensors) and all(id(tensor) in self._host for tensor in tensors)

    def _offend(self, what: str) -> None:
        if place := self._place():
            self.offences.append(f"{place}: {what}")

    def _place(self) -> str:
        """The line of the guarded code that asked for this; empty where other code did."""
        frame = sys._getframe(1)
        while frame.f_code.co_filename in (__file__, "<string>") or frame.f_code.co_filename.startswith(_TORCH):
            if frame.f_back is None:
                return ""
            frame = frame.f_back
        path = frame.f_code.co_filename
        return f"{Path(path).name}:{frame.f_lineno} {frame.f_code.co_name}" if self._where in path else ""


class _Operators(TorchDispatchMode):
    """Tells of every operator whose result, or its shape, depends on what is in a tensor."""

    def __init__(self, offend: Callable[[str], None]) -> None:
        super().__init__()
        self._offend = offend
        self._allowed = False

    @contextmanager
    def allowed(self) -> Iterator[None]:
        before, self._allowed = self._allowed, True
        try:
            yield
        finally:
            self._allowed = before

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if not self._allowed and _depends_on_data(func, args):
            self._offend(str(func))
        return func(*args, **(kwargs or {}))


def _depends_on_data(func: Any, args: Sequence[Any]) -> bool:
    if func._schema.name in _BY_MASK:
        indices = [index for index in args[1] if index is not None]
        return any(index.dtype in (torch.bool, torch.uint8) for index in indices)
    return bool(_DEPENDS_ON_DATA & set(func.tags))


def _names_the_host(args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    named = [*args[1:], *kwargs.values()]
    return any(str(value) == "cpu" for value in named if isinstance(value, (str, torch.device)))
