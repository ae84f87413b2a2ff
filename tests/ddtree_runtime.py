"""DDTREE's modules about server arguments, loaded where SGLang is not: they import nothing heavy."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

RUNTIME = Path(__file__).parents[1] / "patchsets" / "ddtree" / "runtime"
SPECULATIVE = "sglang.srt.speculative"


def package(name: str) -> ModuleType:
    """An empty one, into which modules can be put and in which no other is found."""
    module = ModuleType(name)
    module.__path__ = []
    return module


def load_args() -> tuple[ModuleType, ModuleType]:
    """``ddtree_args`` and ``ddtree_refusals``, beside each other as in an installation."""
    names = ("ddtree_resolution", "ddtree_families", "ddtree_refusals", "ddtree_args")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("sglang", "sglang.srt", SPECULATIVE):
            patch.setitem(sys.modules, name, package(name))
        modules = [_load(patch, name) for name in names]
    return modules[-1], modules[-2]


def _load(patch: pytest.MonkeyPatch, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{SPECULATIVE}.{name}", RUNTIME / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    patch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module
