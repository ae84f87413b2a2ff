"""The smoke tier: a check a step."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

from .replacing import replaced

SECONDS = 1800
COHERE2_MOE = "Cohere2MoeForCausalLM"


def checks() -> Iterator[tuple[str, Callable[[], str]]]:
    yield "quantization:accepted", accepted
    yield "attention:constructed", constructed
    yield "import-guard:starts-without", starts_without
    yield "import-guard:hides-nothing-else", hides_nothing_else
    yield "loading-timeout:read", timeout_is_read
    yield "window-layers:classified", classified


def accepted() -> str:
    """On ROCm ``moe_wna16`` passes, and what the list does not name is refused as before."""
    from sglang.srt.configs import model_config
    from sglang.srt.layers.quantization import QUANTIZATION_METHODS

    refused = []
    with replaced(model_config, is_hip=lambda: True):
        for name in QUANTIZATION_METHODS:
            asked = SimpleNamespace(
                quantization=name,
                _parse_quant_hf_config=lambda: None,
                _find_quant_modelslim_config=lambda: None,
            )
            try:
                model_config.ModelConfig._verify_quantization(asked)
            except ValueError as error:
                assert "ROCm" in str(error), error
                refused.append(name)
    assert "moe_wna16" not in refused, "moe_wna16 is refused"
    assert refused, "nothing is refused: the list is not asked"
    return f"moe_wna16 and {len(QUANTIZATION_METHODS) - len(refused) - 1} others pass, {len(refused)} are refused"


class _Made(Exception):
    """The attention is there: what else the layer is made of does not matter."""


def constructed() -> str:
    """Attention of a layer that ``moe_wna16`` leaves unquantized is made as one without quantization."""
    from sglang.srt.configs.qwen3_next import Qwen3NextConfig
    from sglang.srt.layers.quantization.moe_wna16 import MoeWNA16Config
    from sglang.srt.layers.radix_attention import RadixAttention
    from sglang.srt.models import qwen3_next

    given: dict[str, Any] = {}

    def attention(*args: Any, **kwargs: Any) -> None:
        given.update(kwargs)
        raise _Made(RadixAttention(*args, **kwargs))

    quantized = MoeWNA16Config.__new__(MoeWNA16Config)
    quantized.modules_to_not_convert = ["self_attn"]
    one = SimpleNamespace(attn_tp_rank=0, attn_tp_size=1)
    parts = dict.fromkeys(("QKVParallelLinear", "RowParallelLinear", "get_rope"), lambda *args, **kwargs: None)
    sizes = {"get_attention_tp_rank": lambda: 0, "get_attention_tp_size": lambda: 1, "get_parallel": lambda: one}
    here = {name: value for name, value in sizes.items() if hasattr(qwen3_next, name)}
    layer = qwen3_next.Qwen3HybridAttentionDecoderLayer
    with replaced(qwen3_next, RadixAttention=attention, **parts, **here):
        try:
            layer(Qwen3NextConfig(), 0, quant_config=quantized, prefix="model.layers.0.self_attn")
        except _Made as made:
            (built,) = made.args
            assert built.quant_method is None, built.quant_method
    assert given and given.get("quant_config") is None, f"RadixAttention was made with {sorted(given)}"
    return f"RadixAttention is made with {', '.join(sorted(given))}"


class _Failing(ModuleType):
    """A package that is found, and fails as soon as anything is taken from it."""

    def __init__(self, name: str, error: Exception) -> None:
        super().__init__(name)
        self.error = error
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.error


def _dispatcher(error: Exception) -> ModuleType:
    """The dispatcher's module, imported anew on a host whose flashinfer fails like that."""
    from sglang.srt.layers.moe.token_dispatcher import flashinfer as usual

    spec = importlib.util.spec_from_file_location(f"{usual.__name__}_again", usual.__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "flashinfer"}
    sys.modules["flashinfer"] = _Failing("flashinfer", error)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules["flashinfer"], sys.modules[spec.name]
        sys.modules.update(before)
    return module


def starts_without() -> str:
    errors = (AssertionError("libcudart is not loaded"), OSError("libtorch_cuda.so"), ImportError("no flashinfer"))
    for error in errors:
        assert _dispatcher(error).use_flashinfer is False, type(error).__name__
    return f"{', '.join(type(error).__name__ for error in errors)}: SGLang goes on without flashinfer"


def hides_nothing_else() -> str:
    try:
        _dispatcher(ZeroDivisionError("a fault of its own"))
    except ZeroDivisionError:
        return "any other exception ends the import, as before"
    raise AssertionError("a ZeroDivisionError is hidden")


def timeout_is_read() -> str:
    """The constant has its value where the code that waits for the other ranks reads it."""
    name = "UNBALANCED_MODEL_LOADING_TIMEOUT_S"
    for place in ("model_runner", "model_runner_components.load_model_utils"):
        try:
            module = importlib.import_module(f"sglang.srt.model_executor.{place}")
        except ModuleNotFoundError:
            continue
        readers = [reader for reader in _functions(module) if name in reader.co_names]
        if readers:
            value = getattr(module, name)
            assert value == SECONDS and type(value) is int, f"{name} is {value!r}"
            assert any("monitored_barrier" in reader.co_names for reader in readers), "it is not what the barrier waits"
            return f"{readers[0].co_name} of {place} waits {value} s"
    raise AssertionError(f"nothing reads {name}")


def _functions(module: ModuleType) -> Iterator[CodeType]:
    """The code of a module's functions and of its classes' methods."""
    classes = [item for item in vars(module).values() if isinstance(item, type)]
    for item in [item for holder in (module, *classes) for item in vars(holder).values()]:
        if isinstance(item, FunctionType) and item.__module__ == module.__name__:
            yield item.__code__


def classified() -> str:
    """Cohere2-MoE has layers of both kinds, and other models are what they were."""
    from sglang.srt.configs import model_config

    if importlib.util.find_spec("sglang.srt.models.cohere2_moe") is None:
        return "this release has no Cohere2-MoE"
    kinds = ["sliding_attention"] * 3 + ["full_attention"]
    config = SimpleNamespace(num_hidden_layers=8, layer_types=kinds * 2)
    ask = model_config.is_hybrid_swa_model
    arguments = (config,) if ask.__code__.co_argcount > 1 else ()
    assert ask([COHERE2_MOE], *arguments) and not ask(["LlamaForCausalLM"], *arguments)
    windows, full = model_config.get_hybrid_layer_ids([COHERE2_MOE], config)
    assert (windows, full) == ([0, 1, 2, 4, 5, 6], [3, 7]), (windows, full)
    assert model_config.get_hybrid_layer_ids(["LlamaForCausalLM"], config) == (None, None)
    assert model_config.get_hybrid_layer_ids(["Llama4ForConditionalGeneration"], config)[1] == [3, 7]
    return f"{len(windows)} of {config.num_hidden_layers} layers have a window"
