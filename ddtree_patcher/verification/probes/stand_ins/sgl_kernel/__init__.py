"""Stands in for SGLang's GPU kernels where they cannot be imported: every name can be imported, but few can be called.

No ``torch.ops.sgl_kernel`` operator is registered, so that code which asks for one finds that there is none.
"""

from ._kernels import kernel as __getattr__
from ._on_the_cpu import assign_extend_cache_locs_cpu, assign_req_to_token_pool_cpu, copy_all_layer_kv_cache_cpu

__all__ = [
    "__getattr__",
    "assign_extend_cache_locs_cpu",
    "assign_req_to_token_pool_cpu",
    "copy_all_layer_kv_cache_cpu",
]
__version__ = "0.0.0"
