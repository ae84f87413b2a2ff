"""What happens once, when a DFLASH worker starts for DDTREE: the last refusals, the runtime, the self-check."""

from __future__ import annotations

import logging
import os
from typing import Any

from sglang.srt.distributed import get_tp_group
from sglang.srt.speculative.ddtree_args import is_on
from sglang.srt.speculative.ddtree_config import spec_config
from sglang.srt.speculative.ddtree_families import Recurrence, recurrence_of
from sglang.srt.speculative.ddtree_patchset import PATCHSET_DIGEST, PATCHSET_ID, PATCHSET_VERSION
from sglang.srt.speculative.ddtree_recurrent import refuse_inexact_states
from sglang.srt.speculative.ddtree_refusals import refuse_sliding_window
from sglang.srt.speculative.ddtree_selfcheck import check_tree_attention
from sglang.srt.speculative.ddtree_worker import DDTreeRuntime

logger = logging.getLogger(__name__)

# The start-up self-check, on unless this is 0.
SELF_CHECK_VARIABLE = "SGLANG_DDTREE_SELF_CHECK"


def start_ddtree(worker: Any, server_args: Any, verify_input: Any) -> DDTreeRuntime:
    """The runtime of a worker whose two models are ready to run. Raises where the server must not start.

    `verify_input` is the class of the target's inputs, dflash_info.DDTreeVerifyInput.
    """
    logger.info("DDTREE: patchset %s %s (%s).", PATCHSET_ID, PATCHSET_VERSION, PATCHSET_DIGEST)
    target = worker.target_worker.model_runner
    _refuse_other_vocabulary(target, worker.draft_model_runner)
    _refuse_dependent_positions(worker)
    refuse_sliding_window(target.sliding_window_size, int(target.model_config.context_len))
    recurrence = _recurrence(target)
    is_exact = recurrence is None or recurrence.is_exact
    if recurrence is not None and not is_exact:
        if not spec_config(server_args).speculative_ddtree_allow_hybrid_unsafe:
            raise ValueError(recurrence.refusal)
        logger.warning("%s The start-up self-check is left out.", recurrence.warning)
    runtime = DDTreeRuntime(server_args, target, int(worker.block_size))
    runtime.statistics.reports = get_tp_group().rank_in_group == 0
    # DFLASH would warn that it cannot sample here; a tree is sampled at its nodes, by the release's own sampler.
    worker._warned_sampling_fallback = True
    if recurrence is not None and is_exact:
        refuse_inexact_states(target, runtime.width, verify_input)
        logger.info("DDTREE: recurrent layers (%s) keep %d states a request.", recurrence.family, runtime.width)
    if not is_exact:
        return runtime
    if not is_on(os.environ.get(SELF_CHECK_VARIABLE, "1")):
        logger.warning("DDTREE: the start-up self-check is switched off by %s.", SELF_CHECK_VARIABLE)
    else:
        checked = check_tree_attention(runtime, target, verify_input, is_hybrid=recurrence is not None)
        logger.info("%s", checked)
    return runtime


def _recurrence(target: Any) -> Recurrence | None:
    """Asked of the running model: a remote configuration may hide from the arguments what its layers are."""
    found = recurrence_of(target.model_config)
    if found is None and hasattr(target.attn_backend, "update_mamba_state_after_mtp_verify"):
        return Recurrence(type(target.model).__name__, "its configuration does not say which recurrent layers it has")
    return found


def _refuse_dependent_positions(worker: Any) -> None:
    """Draft models of later releases that choose a token by the ones before it have no marginals to build a tree of."""
    draft_model = worker.draft_model
    for attribute, head in (
        ("candidate_selector", "a candidate selector (DFlash2)"),
        ("lilicorr", "a LiLiCorr head"),
        ("prefix_gru", "a Domino head"),
    ):
        if getattr(draft_model, attribute, None) is not None:
            raise ValueError(
                f"DDTREE needs a draft model that fills its positions independently, and this one has {head}. Use "
                "--speculative-algorithm DFLASH, or a plain DFlash drafter with --speculative-draft-model-path."
            )


def _refuse_other_vocabulary(target: Any, drafter: Any) -> None:
    own = int(target.model_config.vocab_size)
    sizes = own, int(drafter.model_config.vocab_size or own)  # a drafter without one borrows the target's
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"DDTREE needs a draft model of the target's vocabulary: the target has {sizes[0]} tokens, the draft model "
            f"was made for {sizes[1]}. Set --speculative-draft-model-path to a DFLASH drafter that was trained for "
            "this target."
        )
