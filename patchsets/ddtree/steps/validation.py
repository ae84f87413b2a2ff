"""DDTREE's arguments are checked and completed: DFLASH's way first, then its own."""

from __future__ import annotations

from ddtree_patcher.codemods import Anchor, Codemod, EditCondition, InsertAfter, InsertBefore
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Contract, Refusal, Step, Variant
from ddtree_patcher.shape import Defines, Holds, Lacks

from ..files import (
    DDTREE_ARGS,
    OVERRIDES,
    PIPELINE,
    SERVER_ARGS,
    SPEC_INFO,
    SPECULATIVE_HOOK,
    fragments,
    indented,
)

_CODE = fragments("server_args.py")

# Before the first automatic choice of an attention backend; see ddtree_args.prepare_ddtree_args.
_PREPARE = InsertBefore(SERVER_ARGS, Anchor("self._handle_hpu_backends()", scope="ServerArgs"), _CODE.body("prepare"))

_INLINE = "ServerArgs._handle_speculative_decoding"
_INLINE_BRANCH = 'if self.speculative_algorithm == "DFLASH": ...'
_HOOK = "handle_speculative_decoding"
_HOOK_BRANCH = 'if server_args.speculative_algorithm == "DFLASH": ...'
_HOOK_CALL = Anchor("_handle_dflash(server_args)", scope=_HOOK, within=_HOOK_BRANCH)
_ALGORITHM = "SpeculativeAlgorithm.handle_server_args"
_ALGORITHM_CALL = Anchor("_handle_dflash(server_args)", scope=_ALGORITHM, within="if self.is_dflash(): ...")
# `is_dflash()` holds for DDTREE too, so this branch is entered without an edit of its condition.
_AROUND_ALGORITHM_CALL: tuple[Codemod, ...] = (
    InsertBefore(SPEC_INFO, _ALGORITHM_CALL, _CODE.body("check_algorithm")),
    InsertAfter(SPEC_INFO, _ALGORITHM_CALL, _CODE.body("resolve_algorithm")),
)
_PIPELINE = "run_resolution_pipeline"

# What ddtree_resolution calls, as a release resolves its arguments.
_ASSIGNED = (
    Contract(SERVER_ARGS, "ServerArgs.get_model_config", ("self",), called=True),
    Contract(SERVER_ARGS, "ServerArgs.enable_mamba_extra_buffer", ("self",), called=True),
)
_DECLARED = (
    *(Contract(OVERRIDES, name) for name in ("resolving_view", "model_config_of", "mamba_extra_buffer_of")),
    Contract(OVERRIDES, "declare_resolution", ("server_args", "source")),
    Contract(SPEC_INFO, "SpeculativeAlgorithm.is_ddtree", ("self",)),
)


def _pipeline(name: str, call: str) -> Variant:
    """Arguments are resolved by a function of their own, which declares what it decides."""
    anchor = Anchor(call, scope=_PIPELINE)
    return Variant(
        name,
        when=(Holds(PIPELINE, anchor),),
        edits=(InsertBefore(PIPELINE, anchor, _CODE.body("prepare_server_args")), *_AROUND_ALGORITHM_CALL),
        contract=(*_DECLARED, Contract(SPECULATIVE_HOOK, "_handle_dflash", ("server_args",))),
    )


# The steps `enum` and `flags` have added this by then.
_EARLIER = {
    DDTREE_ARGS: """\
def prepare_ddtree_args(server_args): ...
def check_ddtree_args(server_args): ...
def resolve_ddtree_args(server_args): ...
"""
}
_SERVER_ARGS_INLINE = """\
class ServerArgs:
    def __post_init__(self):
        self._handle_missing_default_values()

        # Handle device-specific backends.
        self._handle_hpu_backends()
        self._handle_speculative_decoding()

    def _handle_speculative_decoding(self):
        if self.speculative_algorithm == "DFLASH":
            if self.enable_dp_attention:
                raise ValueError("no")
            if self.enable_mixed_chunk:
                self.enable_mixed_chunk = False

        if self.speculative_algorithm in ("EAGLE", "EAGLE3"):
            pass

    def get_model_config(self): ...
    def enable_mamba_extra_buffer(self): ...
"""


def _inserted(name: str, margin: int) -> str:
    return indented(_CODE.body(name), " " * margin)


def _prepared(server_args: str) -> str:
    return server_args.replace("        # Handle device", _inserted("prepare", 8) + "        # Handle device")


_SERVER_ARGS_AFTER = (
    _prepared(_SERVER_ARGS_INLINE)
    .replace('if self.speculative_algorithm == "DFLASH":\n', 'if self.speculative_algorithm in ("DFLASH", "DDTREE"):\n')
    .replace("            if self.enable_dp", _inserted("check_self", 12) + "            if self.enable_dp")
    .replace("chunk = False\n", "chunk = False\n" + _inserted("resolve_self", 12))
)
_SERVER_ARGS_HOOK = _SERVER_ARGS_INLINE.replace("_handle_speculative_decoding", "_handle_other")
_HANDLER = "\n\ndef _handle_dflash(server_args): ...\n"
_HOOK_BEFORE = """\
def handle_speculative_decoding(server_args):
    if server_args.speculative_algorithm == "DFLASH":
        _handle_dflash(server_args)
    elif server_args.speculative_algorithm == "NGRAM":
        _handle_ngram(server_args)
"""
_HOOK_AFTER = (
    _HOOK_BEFORE.replace('speculative_algorithm == "DFLASH":', 'speculative_algorithm in ("DFLASH", "DDTREE"):')
    .replace("        _handle_dflash", _inserted("check_server_args", 8) + "        _handle_dflash")
    .replace("dflash(server_args)\n", "dflash(server_args)\n" + _inserted("resolve_server_args", 8))
)
_ALGORITHM_BEFORE = """\
class SpeculativeAlgorithm:
    def is_ddtree(self): ...

    def handle_server_args(self, server_args):
        from sglang.srt.arg_groups.speculative_hook import _handle_dflash, _handle_ngram

        if self.is_dflash():
            _handle_dflash(server_args)
        elif self.is_ngram():
            _handle_ngram(server_args)
"""
_ALGORITHM_AFTER = _ALGORITHM_BEFORE.replace(
    "            _handle_dflash(server_args)\n",
    _inserted("check_algorithm", 12) + "            _handle_dflash(server_args)\n" + _inserted("resolve_algorithm", 12),
)
_HOOK_FILES = {SPECULATIVE_HOOK: f"def handle_speculative_decoding(server_args): ...{_HANDLER}", **_EARLIER}
_PIPELINE_BEFORE = """\
def run_resolution_pipeline(server_args):
    from sglang.srt.arg_groups.platform_hook import handle_hpu_backends

    run_hook(handle_hpu_backends, server_args)
"""
_PIPELINE_FILES = {
    SPEC_INFO: _ALGORITHM_BEFORE,
    SERVER_ARGS: "class ServerArgs: ...\n",
    OVERRIDES: """\
from a import mamba_extra_buffer_of, model_config_of, resolving_view


def declare_resolution(server_args, source, **fields): ...
""",
    **_HOOK_FILES,
}


def _pipeline_after(before: str) -> dict[str, str]:
    margin = "\n    run_hook" if "run_hook" in before else "\n    handle_hpu_backends("
    after = before.replace(margin, "\n" + _inserted("prepare_server_args", 4) + margin[1:])
    return {PIPELINE: after, SPEC_INFO: _ALGORITHM_AFTER}


_PLAIN_PIPELINE = _PIPELINE_BEFORE.replace("run_hook(handle_hpu_backends, ", "handle_hpu_backends(")

STEP = Step(
    id="validation",
    summary="DDTREE inherits DFLASH's checks and defaults, then refuses and chooses for itself",
    why=(
        "What DFLASH does with its arguments is right for DDTREE too, and not enough. A tree needs a block size apart "
        "from the verify width, a backend that applies a tree mask, nothing that takes a tree for a chain, and no "
        "recurrent layers unless asked for."
    ),
    requires=("enum", "flags"),
    contract=(
        Contract(DDTREE_ARGS, "prepare_ddtree_args", ("server_args",)),
        Contract(DDTREE_ARGS, "check_ddtree_args", ("server_args",)),
        Contract(DDTREE_ARGS, "resolve_ddtree_args", ("server_args",)),
    ),
    variants=(
        Variant(
            "inline",
            when=(Defines(SERVER_ARGS, _INLINE),),
            edits=(
                _PREPARE,
                EditCondition(
                    SERVER_ARGS,
                    _INLINE,
                    'self.speculative_algorithm == "DFLASH"',
                    'self.speculative_algorithm in ("DFLASH", "DDTREE")',
                ),
                InsertBefore(
                    SERVER_ARGS,
                    Anchor("if self.enable_dp_attention: ...", scope=_INLINE, within=_INLINE_BRANCH),
                    _CODE.body("check_self"),
                ),
                InsertAfter(
                    SERVER_ARGS,
                    Anchor("if self.enable_mixed_chunk: ...", scope=_INLINE, within=_INLINE_BRANCH),
                    _CODE.body("resolve_self"),
                ),
            ),
            contract=_ASSIGNED,
        ),
        Variant(
            "hook",
            when=(
                Defines(SPECULATIVE_HOOK, _HOOK),
                Lacks(Defines(SERVER_ARGS, _INLINE)),
                Lacks(Defines(SPEC_INFO, _ALGORITHM)),
            ),
            edits=(
                _PREPARE,
                EditCondition(
                    SPECULATIVE_HOOK,
                    _HOOK,
                    'server_args.speculative_algorithm == "DFLASH"',
                    'server_args.speculative_algorithm in ("DFLASH", "DDTREE")',
                ),
                InsertBefore(SPECULATIVE_HOOK, _HOOK_CALL, _CODE.body("check_server_args")),
                InsertAfter(SPECULATIVE_HOOK, _HOOK_CALL, _CODE.body("resolve_server_args")),
            ),
            contract=(*_ASSIGNED, Contract(SPECULATIVE_HOOK, "_handle_dflash", ("server_args",))),
        ),
        Variant(
            "algorithm",
            when=(Defines(SPEC_INFO, _ALGORITHM), Defines(SERVER_ARGS, "ServerArgs._handle_hpu_backends")),
            edits=(_PREPARE, *_AROUND_ALGORITHM_CALL),
            contract=(
                *_ASSIGNED,
                Contract(SPEC_INFO, "SpeculativeAlgorithm.is_ddtree", ("self",)),
                Contract(SPECULATIVE_HOOK, "_handle_dflash", ("server_args",)),
            ),
        ),
        _pipeline("pipeline", "handle_hpu_backends(server_args)"),
        _pipeline("pipeline_of_hooks", "run_hook(handle_hpu_backends, server_args)"),
    ),
    cases=(
        Case("inline", {SERVER_ARGS: _SERVER_ARGS_INLINE, **_EARLIER}, {SERVER_ARGS: _SERVER_ARGS_AFTER}),
        Case(
            "hook",
            {SERVER_ARGS: _SERVER_ARGS_HOOK, SPECULATIVE_HOOK: _HOOK_BEFORE + _HANDLER, **_EARLIER},
            {SERVER_ARGS: _prepared(_SERVER_ARGS_HOOK), SPECULATIVE_HOOK: _HOOK_AFTER + _HANDLER},
        ),
        Case(
            "algorithm",
            {
                SERVER_ARGS: f"{_SERVER_ARGS_HOOK}    def _handle_hpu_backends(self): ...\n",
                SPEC_INFO: _ALGORITHM_BEFORE,
                **_HOOK_FILES,
            },
            {
                SERVER_ARGS: _prepared(f"{_SERVER_ARGS_HOOK}    def _handle_hpu_backends(self): ...\n"),
                SPEC_INFO: _ALGORITHM_AFTER,
            },
        ),
        Case("pipeline", {PIPELINE: _PLAIN_PIPELINE, **_PIPELINE_FILES}, _pipeline_after(_PLAIN_PIPELINE)),
        Case("pipeline_of_hooks", {PIPELINE: _PIPELINE_BEFORE, **_PIPELINE_FILES}, _pipeline_after(_PIPELINE_BEFORE)),
    ),
    refusals=(
        Refusal({SERVER_ARGS: _SERVER_ARGS_HOOK, **_EARLIER}, StepOutcome.ANCHOR_MISSING),
        Refusal(
            {SERVER_ARGS: _SERVER_ARGS_INLINE.replace("self._handle_hpu_backends()", "self._handle_hpu()"), **_EARLIER},
            StepOutcome.ANCHOR_MISSING,
        ),
        Refusal(
            {
                SERVER_ARGS: _SERVER_ARGS_INLINE.replace("def get_model_config(self)", "def model_config(self)"),
                **_EARLIER,
            },
            StepOutcome.PRECONDITION_FAILED,
        ),
        Refusal({SERVER_ARGS: _SERVER_ARGS_INLINE}, StepOutcome.PRECONDITION_FAILED),
        Refusal(
            {
                **_PIPELINE_FILES,
                PIPELINE: _PIPELINE_BEFORE,
                SPEC_INFO: _ALGORITHM_BEFORE.replace("_dflash():", "_d():"),
            },
            StepOutcome.ANCHOR_MISSING,
        ),
        Refusal({**_PIPELINE_FILES, PIPELINE: _PIPELINE_BEFORE, OVERRIDES: "x = 1\n"}, StepOutcome.PRECONDITION_FAILED),
    ),
)
