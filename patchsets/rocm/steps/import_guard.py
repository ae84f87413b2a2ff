"""The guard of an import is widened: flashinfer may be there and fail in another way than not to be found.

Reported as sgl-project/sglang pull requests 19929 (ROCm, MI300X: the server does not start, as flashinfer asserts that
``libcudart`` is loaded) and 34310 (``OSError`` for a library that is not there, on hosts without CUDA).
"""

from __future__ import annotations

from ddtree_patcher.codemods import Anchor, CatchAlso
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Refusal, Step, Variant
from ddtree_patcher.shape import Holds

from ..files import FLASHINFER_DISPATCHER

_IMPORT = Anchor("try:\n    ...\nexcept ...:\n    use_flashinfer = False")

_BEFORE = """\
try:
    from flashinfer.comm import MoeAlltoAll

    use_flashinfer = True
except ImportError:
    use_flashinfer = False
"""


def _catching(types: str) -> dict[str, str]:
    return {FLASHINFER_DISPATCHER: _BEFORE.replace("except ImportError", f"except {types}")}


STEP = Step(
    id="import-guard",
    summary="SGLang starts where flashinfer is installed and cannot be used",
    why=(
        "An import that is not guarded enough: a flashinfer that was built for CUDA raises an AssertionError or an "
        "OSError on a host without it, and only an ImportError was expected. SGLang is ready to go without it."
    ),
    variants=(
        Variant(
            "guarded",
            when=(Holds(FLASHINFER_DISPATCHER, _IMPORT),),
            edits=(CatchAlso(FLASHINFER_DISPATCHER, _IMPORT, ("AssertionError", "OSError"), beside="ImportError"),),
        ),
    ),
    cases=(Case("guarded", _catching("ImportError"), _catching("(ImportError, AssertionError, OSError)")),),
    refusals=(
        Refusal(_catching("ModuleNotFoundError"), StepOutcome.ANCHOR_MISSING),
        Refusal(_catching("(ImportError, AssertionError)"), StepOutcome.HALF_UPSTREAMED),
        Refusal({FLASHINFER_DISPATCHER: "from flashinfer.comm import MoeAlltoAll\n"}, StepOutcome.ANCHOR_MISSING),
    ),
)
