"""DDTREE's arguments are checked and completed: DFLASH's way first, then its own."""

from __future__ import annotations

from ddtree_patcher.codemods import Anchor, EditCondition, ExtendLiteral, InsertAfter, InsertBefore
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Contract, Refusal, Step, Variant
from ddtree_patcher.shape import Defines, Lacks

from ..files import DDTREE_ARGS, SERVER_ARGS, SPECULATIVE_HOOK, fragments, indented

_CODE = fragments("server_args.py")

# Before the first automatic choice of an attention backend; see ddtree_args.prepare_ddtree_args.
_PREPARE = InsertBefore(
    SERVER_ARGS, Anchor("self._handle_hpu_backends()", scope="ServerArgs.__post_init__"), _CODE.body("prepare")
)

_INLINE = "ServerArgs._handle_speculative_decoding"
_INLINE_BRANCH = 'if self.speculative_algorithm == "DFLASH": ...'
_HOOK = "handle_speculative_decoding"
_HOOK_BRANCH = 'if server_args.speculative_algorithm == "DFLASH": ...'
_HOOK_CALL = Anchor("_handle_dflash(server_args)", scope=_HOOK, within=_HOOK_BRANCH)
_WINDOW_WARNING = Anchor("if server_args.speculative_algorithm not in ...: ...", scope=_HOOK)

# The step `flags` has added this by then.
_FLAGS = {
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
    def get_attention_backends(self): ...
    def use_mla_backend(self): ...
    def enable_mamba_extra_buffer(self): ...
"""


def _inserted(name: str, margin: str) -> str:
    return indented(_CODE.body(name), margin)


_SERVER_ARGS_AFTER = (
    _SERVER_ARGS_INLINE.replace("        # Handle device", _inserted("prepare", " " * 8) + "        # Handle device")
    .replace('if self.speculative_algorithm == "DFLASH":\n', 'if self.speculative_algorithm in ("DFLASH", "DDTREE"):\n')
    .replace("            if self.enable_dp", _inserted("check_self", " " * 12) + "            if self.enable_dp")
    .replace("chunk = False\n", "chunk = False\n" + _inserted("resolve_self", " " * 12))
)
_HOOK_BEFORE = """\
def handle_speculative_decoding(server_args):
    if server_args.speculative_draft_window_size is not None:
        if server_args.speculative_algorithm not in ("EAGLE3", "DFLASH"):
            logger.warning("no effect")

    if server_args.speculative_algorithm == "DFLASH":
        _handle_dflash(server_args)
    elif server_args.speculative_algorithm == "NGRAM":
        _handle_ngram(server_args)
"""
_HOOK_AFTER = (
    _HOOK_BEFORE.replace('("EAGLE3", "DFLASH")', '("EAGLE3", "DFLASH", "DDTREE")')
    .replace('speculative_algorithm == "DFLASH":', 'speculative_algorithm in ("DFLASH", "DDTREE"):')
    .replace("        _handle_dflash", _inserted("check_server_args", " " * 8) + "        _handle_dflash")
    .replace("dflash(server_args)\n", "dflash(server_args)\n" + _inserted("resolve_server_args", " " * 8))
)
_SERVER_ARGS_HOOK = _SERVER_ARGS_INLINE.replace("_handle_speculative_decoding", "_handle_other")
_SERVER_ARGS_HOOK_AFTER = _SERVER_ARGS_HOOK.replace(
    "        # Handle device", _inserted("prepare", " " * 8) + "        # Handle device"
)

STEP = Step(
    id="validation",
    summary="DDTREE inherits DFLASH's checks and defaults, then refuses and chooses for itself",
    why=(
        "The literal comparison is the only gate to DFLASH's handling. A tree needs more: a block size apart from the "
        "verify width, a backend that applies a tree mask, page size 1, and no recurrent layers unless asked for."
    ),
    requires=("enum", "flags"),
    contract=(
        Contract(SERVER_ARGS, "ServerArgs.get_model_config", ("self",)),
        Contract(SERVER_ARGS, "ServerArgs.get_attention_backends", ("self",)),
        Contract(SERVER_ARGS, "ServerArgs.use_mla_backend", ("self",)),
        Contract(SERVER_ARGS, "ServerArgs.enable_mamba_extra_buffer", ("self",)),
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
                EditCondition(
                    SERVER_ARGS,
                    _INLINE,
                    'self.speculative_algorithm == "DFLASH"',
                    'self.speculative_algorithm in ("DFLASH", "DDTREE")',
                ),
            ),
        ),
        Variant(
            "hook",
            when=(Defines(SPECULATIVE_HOOK, _HOOK), Lacks(Defines(SERVER_ARGS, _INLINE))),
            edits=(
                _PREPARE,
                InsertBefore(SPECULATIVE_HOOK, _HOOK_CALL, _CODE.body("check_server_args")),
                InsertAfter(SPECULATIVE_HOOK, _HOOK_CALL, _CODE.body("resolve_server_args")),
                EditCondition(
                    SPECULATIVE_HOOK,
                    _HOOK,
                    'server_args.speculative_algorithm == "DFLASH"',
                    'server_args.speculative_algorithm in ("DFLASH", "DDTREE")',
                ),
                # DDTREE honours the draft window as DFLASH does; without this it would be warned that it does not.
                ExtendLiteral(SPECULATIVE_HOOK, _WINDOW_WARNING, '"DDTREE"', beside='"DFLASH"'),
            ),
            contract=(Contract(SPECULATIVE_HOOK, "_handle_dflash", ("server_args",)),),
        ),
    ),
    cases=(
        Case("inline", {SERVER_ARGS: _SERVER_ARGS_INLINE, **_FLAGS}, {SERVER_ARGS: _SERVER_ARGS_AFTER}),
        Case(
            "hook",
            {
                SERVER_ARGS: _SERVER_ARGS_HOOK,
                SPECULATIVE_HOOK: _HOOK_BEFORE + "\n\ndef _handle_dflash(server_args): ...\n",
                **_FLAGS,
            },
            {
                SERVER_ARGS: _SERVER_ARGS_HOOK_AFTER,
                SPECULATIVE_HOOK: _HOOK_AFTER + "\n\ndef _handle_dflash(server_args): ...\n",
            },
        ),
    ),
    refusals=(
        Refusal({SERVER_ARGS: _SERVER_ARGS_HOOK, **_FLAGS}, StepOutcome.ANCHOR_MISSING),
        Refusal(
            {SERVER_ARGS: _SERVER_ARGS_INLINE.replace("self._handle_hpu_backends()", "self._handle_hpu()"), **_FLAGS},
            StepOutcome.ANCHOR_MISSING,
        ),
        Refusal(
            {
                SERVER_ARGS: _SERVER_ARGS_INLINE.replace("def get_model_config(self)", "def model_config(self)"),
                **_FLAGS,
            },
            StepOutcome.PRECONDITION_FAILED,
        ),
        Refusal({SERVER_ARGS: _SERVER_ARGS_INLINE}, StepOutcome.PRECONDITION_FAILED),
    ),
)
