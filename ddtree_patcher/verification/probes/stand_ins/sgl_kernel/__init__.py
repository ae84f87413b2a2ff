"""Stands in for SGLang's GPU kernels where they cannot be imported: every name can be imported, none can be called.

No ``torch.ops.sgl_kernel`` operator is registered, so that code which asks for one finds that there is none.
"""

from ._kernels import kernel as __getattr__

__all__ = ["__getattr__"]
__version__ = "0.0.0"
