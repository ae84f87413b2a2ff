"""A branch is added to a dispatch, and a name to the list that leads there: which layers of Cohere2-MoE have a window.

Reported by the R9700 and 3090 series of github.com/mattbucci (their patches 062 and 051) for SGLang 0.5.13, which
brings the model: it is not known to have layers with a sliding window, and the triton backend meets a window without
indices.
"""

from __future__ import annotations

from ddtree_patcher.codemods import AddBranch, Anchor, ExtendLiteral
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Contract, Refusal, Step, Variant
from ddtree_patcher.shape import Defines, HasFile, Lacks

from ..files import COHERE2_MOE, MODEL_CONFIG, fragments

_MODEL = '"Cohere2MoeForCausalLM"'
_CODE = fragments("model_config.py").body("cohere2_moe")
_LISTED = Anchor("hybrid_swa_archs = ...", scope="is_hybrid_swa_model")
_DISPATCH = Anchor('if "Llama4ForConditionalGeneration" in model_architectures: ...', scope="get_hybrid_layer_ids")

_BEFORE = """\
def is_hybrid_swa_model(model_architectures):
    hybrid_swa_archs = {
        "Step3p5ForCausalLM",
        "Gemma4ForCausalLM",
    }
    return any(arch in hybrid_swa_archs for arch in model_architectures)


def get_hybrid_layer_ids(model_architectures, hf_text_config):
    if "Llama4ForConditionalGeneration" in model_architectures:
        swa_attention_layer_ids = [0]
        full_attention_layer_ids = [1]
    elif "Step3p5ForCausalLM" in model_architectures:
        swa_attention_layer_ids = [1]
        full_attention_layer_ids = [0]
    else:
        swa_attention_layer_ids = None
        full_attention_layer_ids = None
    return swa_attention_layer_ids, full_attention_layer_ids
"""
_BRANCH = f"    elif {_MODEL} in model_architectures:\n" + "".join(
    f"        {line}" for line in _CODE.splitlines(keepends=True)
)
_AFTER = _BEFORE.replace("    else:\n", f"{_BRANCH}    else:\n").replace(
    '        "Step3p5ForCausalLM",\n', f'        "Step3p5ForCausalLM",\n        {_MODEL},\n'
)
_THERE = {COHERE2_MOE: "class Cohere2MoeForCausalLM: ...\n"}

STEP = Step(
    id="window-layers",
    summary="the layers of Cohere2-MoE that attend to a sliding window are known",
    why=(
        "A dispatch that lacks a branch: the configuration says which layers have a window, and neither the memory "
        "pool nor the attention backend is told."
    ),
    variants=(
        Variant("no_such_model", when=(HasFile(MODEL_CONFIG), Lacks(HasFile(COHERE2_MOE)))),
        Variant(
            "by_architecture",
            when=(HasFile(COHERE2_MOE), Defines(MODEL_CONFIG, "get_hybrid_layer_ids")),
            edits=(
                ExtendLiteral(MODEL_CONFIG, _LISTED, _MODEL, beside='"Step3p5ForCausalLM"'),
                AddBranch(MODEL_CONFIG, _DISPATCH, f"{_MODEL} in model_architectures", _CODE),
            ),
            contract=(
                Contract(COHERE2_MOE, "Cohere2MoeForCausalLM"),
                Contract(MODEL_CONFIG, "get_hybrid_layer_ids", ("model_architectures", "hf_text_config")),
            ),
        ),
    ),
    cases=(
        Case("no_such_model", {MODEL_CONFIG: _BEFORE}, {}),
        Case("by_architecture", {MODEL_CONFIG: _BEFORE, **_THERE}, {MODEL_CONFIG: _AFTER}),
    ),
    refusals=(
        Refusal({MODEL_CONFIG: _BEFORE.replace("get_", "find_"), **_THERE}, StepOutcome.ANCHOR_MISSING),
        Refusal({MODEL_CONFIG: _BEFORE.replace('"Llama4', '"Llama5'), **_THERE}, StepOutcome.ANCHOR_MISSING),
        Refusal(
            {MODEL_CONFIG: _BEFORE.replace("    else:\n", f"{_BRANCH}    else:\n"), **_THERE},
            StepOutcome.HALF_UPSTREAMED,
        ),
        Refusal(
            {MODEL_CONFIG: _AFTER.replace("sliding_attention", "window"), **_THERE},
            StepOutcome.HALF_UPSTREAMED,
        ),
        Refusal({MODEL_CONFIG: _BEFORE.replace("hf_text", "text"), **_THERE}, StepOutcome.PRECONDITION_FAILED),
    ),
)
