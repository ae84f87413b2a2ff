"""The places that ask for DFLASH by its name and must mean DDTREE too: one step each.

Predicates cover most of SGLang (step `enum`). Of the places that compare the name itself, most shall go on leaving
DDTREE out, as what they open to DFLASH is made for a chain; ``verdicts.py`` has every one of them, with the reason.
"""

from __future__ import annotations

from ddtree_patcher.codemods import Anchor, EditCondition, ExtendLiteral
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Refusal, Step, Variant
from ddtree_patcher.shape import Defines, HasFile, Holds, Lacks

from ..files import DFLASH_WORKER, METRICS_REPORTER, SERVER_ARGS, SPEC_UTILS, SPECULATIVE_HOOK

_HOOK = "handle_speculative_decoding"


def _among(path: str, anchor: Anchor, name: str) -> Variant:
    """The names are listed: DDTREE comes to stand beside DFLASH."""
    return Variant(
        name, when=(Holds(path, anchor),), edits=(ExtendLiteral(path, anchor, '"DDTREE"', beside='"DFLASH"'),)
    )


def _listed(name: str, path: str, before: str) -> Case:
    return Case(name, {path: before}, {path: before.replace('"DFLASH"', '"DFLASH", "DDTREE"')})


# --- the draft window -------------------------------------------------------------------------------------------------


def _window(args: str) -> Anchor:
    return Anchor(
        f"if {args}.speculative_algorithm not in ...: ...",
        scope=_HOOK,
        within=f"if {args}.speculative_draft_window_size is not None: ...",
    )


_WINDOW_BEFORE = """\
def handle_speculative_decoding(server_args):
    if server_args.speculative_draft_window_size is not None:
        if server_args.speculative_algorithm not in ("EAGLE3", "DFLASH"):
            logger.warning("no effect")
"""
_WINDOW_VIEW_BEFORE = """\
def handle_speculative_decoding(server_args):
    cfg = resolving_view(server_args)
    if cfg.speculative_use_block_verification:
        if cfg.speculative_algorithm not in ("EAGLE", "EAGLE3"):
            raise ValueError("no")
    if cfg.speculative_draft_window_size is not None:
        if cfg.speculative_algorithm not in ("EAGLE", "EAGLE3", "DFLASH"):
            logger.warning("no effect")
"""

DRAFT_WINDOW = Step(
    id="draft-window",
    summary="nobody is warned that --speculative-draft-window-size has no effect with DDTREE",
    why="It has: DDTREE drafts as DFLASH does.",
    requires=("enum",),
    variants=(
        Variant("no_warning", when=(Lacks(Defines(SPECULATIVE_HOOK, _HOOK)),)),
        _among(SPECULATIVE_HOOK, _window("server_args"), "asked_of_arguments"),
        _among(SPECULATIVE_HOOK, _window("cfg"), "asked_of_view"),
    ),
    cases=(
        Case("no_warning", {SPECULATIVE_HOOK: "import json\n"}, {}),
        _listed("asked_of_arguments", SPECULATIVE_HOOK, _WINDOW_BEFORE),
        _listed("asked_of_view", SPECULATIVE_HOOK, _WINDOW_VIEW_BEFORE),
    ),
    refusals=(
        Refusal({SPECULATIVE_HOOK: _WINDOW_BEFORE.replace("DFLASH", "OTHER")}, StepOutcome.ANCHOR_MISSING),
        Refusal({SPECULATIVE_HOOK: _WINDOW_BEFORE.replace("_window_size", "_window")}, StepOutcome.ANCHOR_MISSING),
    ),
)

# --- hidden states between two steps ----------------------------------------------------------------------------------

_RELAY = "spec_need_hidden_states"
_RELAY_BEFORE = """\
def spec_need_hidden_states(server_args=None):
    if server_args.speculative_algorithm in ("STANDALONE", "DFLASH"):
        return False
    return not server_args.enable_multi_layer_eagle
"""
_RELAY_NAMESPACE_BEFORE = """\
def spec_need_hidden_states():
    spec = get_spec()
    if spec.speculative_algorithm in ("STANDALONE", "DFLASH", "DSPARK"):
        return False
    return not spec.enable_multi_layer_eagle
"""

HIDDEN_STATES = Step(
    id="hidden-states",
    summary="the overlap scheduler keeps no hidden states for DDTREE from one step to the next",
    why="DFLASH's worker, which is DDTREE's too, gives it none: it would relay placeholders without a width.",
    requires=("enum",),
    variants=(
        Variant("no_overlap", when=(HasFile(DFLASH_WORKER),)),
        _among(
            SPEC_UTILS, Anchor("if server_args.speculative_algorithm in ...: ...", scope=_RELAY), "asked_of_arguments"
        ),
        _among(SPEC_UTILS, Anchor("if spec.speculative_algorithm in ...: ...", scope=_RELAY), "asked_of_namespace"),
    ),
    cases=(
        Case("no_overlap", {DFLASH_WORKER: "class DFlashWorker: ...\n", SPEC_UTILS: "import json\n"}, {}),
        _listed("asked_of_arguments", SPEC_UTILS, _RELAY_BEFORE),
        _listed("asked_of_namespace", SPEC_UTILS, _RELAY_NAMESPACE_BEFORE),
    ),
    refusals=(
        Refusal({SPEC_UTILS: _RELAY_BEFORE.replace("DFLASH", "OTHER")}, StepOutcome.ANCHOR_MISSING),
        Refusal({SPEC_UTILS: "import json\n"}, StepOutcome.ANCHOR_MISSING),
    ),
)

# --- lazily planned buffers of recurrent states -----------------------------------------------------------------------

_LAZY = "ServerArgs._validate_mamba_extra_buffer"
_NAMED = Holds(SERVER_ARGS, Anchor('algo = (view.speculative_algorithm or "").upper()', scope=_LAZY))
_LAZY_BEFORE = """\
class ServerArgs:
    def _validate_mamba_extra_buffer(self, view, model_arch):
        algo = (view.speculative_algorithm or "").upper()
        assert algo != "DFLASH", "unsupported"
"""

LAZY_STATES = Step(
    id="lazy-states",
    summary="lazily planned buffers of recurrent states are refused for DDTREE as for DFLASH",
    why="DFLASH's verification, in which DDTREE's ends, bypasses the hook that plans them. Only 0.5.17 asks by name.",
    requires=("enum",),
    variants=(
        Variant(
            "asserted",
            when=(_NAMED,),
            edits=(EditCondition(SERVER_ARGS, _LAZY, 'algo != "DFLASH"', 'algo not in ("DFLASH", "DDTREE")'),),
        ),
        Variant("not_asserted", when=(Lacks(_NAMED),)),
    ),
    cases=(
        Case(
            "asserted",
            {SERVER_ARGS: _LAZY_BEFORE},
            {SERVER_ARGS: _LAZY_BEFORE.replace('!= "DFLASH"', 'not in ("DFLASH", "DDTREE")')},
        ),
        Case("not_asserted", {SERVER_ARGS: "class ServerArgs: ...\n"}, {}),
    ),
    refusals=(Refusal({SERVER_ARGS: _LAZY_BEFORE.replace("DFLASH", "OTHER")}, StepOutcome.ANCHOR_MISSING),),
)

# --- metrics ----------------------------------------------------------------------------------------------------------

_SNAPSHOT = "_SPEC_DECODE_SNAPSHOT_ALGORITHMS"
_SNAPSHOT_ANCHOR = Anchor(f"{_SNAPSHOT} = ...")
_SNAPSHOT_BEFORE = """\
_SPEC_DECODE_SNAPSHOT_ALGORITHMS = (
    SpeculativeAlgorithm.EAGLE,
    SpeculativeAlgorithm.DFLASH,
)
"""

METRICS = Step(
    id="metrics",
    summary="what is reported of a decode batch is its state when it was scheduled, with DDTREE too",
    why="Overlapped steps add tokens before they are reported, whatever the drafts' shape is.",
    requires=("enum",),
    variants=(
        Variant(
            "snapshot",
            when=(Defines(METRICS_REPORTER, _SNAPSHOT),),
            edits=(
                ExtendLiteral(
                    METRICS_REPORTER,
                    _SNAPSHOT_ANCHOR,
                    "SpeculativeAlgorithm.DDTREE",
                    beside="SpeculativeAlgorithm.DFLASH",
                ),
            ),
        ),
        Variant("no_snapshot", when=(Lacks(Defines(METRICS_REPORTER, _SNAPSHOT)),)),
    ),
    cases=(
        Case(
            "snapshot",
            {METRICS_REPORTER: _SNAPSHOT_BEFORE},
            {METRICS_REPORTER: _SNAPSHOT_BEFORE.replace("DFLASH,\n", "DFLASH,\n    SpeculativeAlgorithm.DDTREE,\n")},
        ),
        Case("no_snapshot", {METRICS_REPORTER: "import json\n"}, {}),
    ),
    refusals=(Refusal({METRICS_REPORTER: _SNAPSHOT_BEFORE.replace("DFLASH", "OTHER")}, StepOutcome.ANCHOR_MISSING),),
)

STEPS = (DRAFT_WINDOW, HIDDEN_STATES, LAZY_STATES, METRICS)
