"""What happens once, when a DFLASH worker starts for DDTREE: the last refusals, the runtime, the self-check."""

from __future__ import annotations

import logging
import os
from typing import Any

from sglang.srt.speculative.ddtree_args import HYBRID_UNSAFE, hybrid_refusal, is_on
from sglang.srt.speculative.ddtree_selfcheck import check_tree_attention
from sglang.srt.speculative.ddtree_worker import DDTreeRuntime

logger = logging.getLogger(__name__)

# The start-up self-check, on unless this is 0.
SELF_CHECK_VARIABLE = "SGLANG_DDTREE_SELF_CHECK"


def start_ddtree(worker: Any, server_args: Any, verify_input: Any) -> DDTreeRuntime:
    """The runtime of a worker whose two models are ready to run. Raises where the server must not start.

    `verify_input` is the class of the target's inputs, dflash_info.DDTreeVerifyInput.
    """
    target = worker.target_worker.model_runner
    _refuse_other_vocabulary(target, worker.draft_model_runner)
    is_hybrid = _is_hybrid(target)
    if is_hybrid and not server_args.speculative_ddtree_allow_hybrid_unsafe:
        raise ValueError(hybrid_refusal())
    runtime = DDTreeRuntime(server_args, target, int(worker.block_size))
    runtime.statistics.reports = worker.tp_rank == 0
    if is_hybrid:
        logger.warning("%s The start-up self-check is left out.", HYBRID_UNSAFE)
    elif not is_on(os.environ.get(SELF_CHECK_VARIABLE, "1")):
        logger.warning("DDTREE: the start-up self-check is switched off by %s.", SELF_CHECK_VARIABLE)
    else:
        logger.info("%s", check_tree_attention(runtime, target, verify_input))
    return runtime


def _is_hybrid(target: Any) -> bool:
    """Asked of the running model: a remote configuration may hide from the arguments what its layers are."""
    return target.mambaish_config is not None or hasattr(target.attn_backend, "update_mamba_state_after_mtp_verify")


def _refuse_other_vocabulary(target: Any, drafter: Any) -> None:
    sizes = int(target.model_config.vocab_size), int(drafter.model_config.vocab_size)
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"DDTREE needs a draft model of the target's vocabulary: the target has {sizes[0]} tokens, the draft model "
            f"was made for {sizes[1]}. Set --speculative-draft-model-path to a DFLASH drafter that was trained for "
            "this target."
        )
