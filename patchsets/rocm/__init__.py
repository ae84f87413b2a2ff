"""What people change in an installed SGLang to serve mixtures of experts on AMD GPUs: five small steps.

They have nothing to do with DDTREE, and little with each other: it is the patchset of a platform team, and the second
one of this repository. Each step is an edit that people make by hand today, with the public report that it comes from;
``docs/patchsets.md`` says how long the same edits live as text for ``patch``.
"""

from ddtree_patcher.patchset import Patchset

from .steps import attention, import_guard, loading_timeout, quantization, window_layers

PATCHSET = Patchset(
    id="rocm",
    version="0.1.0",
    summary="five small repairs for serving mixtures of experts on AMD GPUs",
    distribution="sglang",
    package="sglang",
    supports=">=0.5.11",
    steps=(
        quantization.STEP,
        attention.STEP,
        import_guard.STEP,
        loading_timeout.STEP,
        window_layers.STEP,
    ),
    smoke="smoke/program.py",
)
