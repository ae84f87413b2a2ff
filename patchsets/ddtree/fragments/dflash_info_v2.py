"""Goes into ``sglang/srt/speculative/dflash_info.py`` from 0.5.14 on: the verify input of a tree."""

from __future__ import annotations

from dataclasses import dataclass

from sglang.srt.managers.schedule_batch import ScheduleBatch
from sglang.srt.managers.tp_worker import TpModelWorker
from sglang.srt.model_executor.forward_batch_info import ForwardBatch
from sglang.srt.speculative.ddtree_input import DraftTreeFields
from sglang.srt.speculative.dflash_info import DFlashVerifyInput


@dataclass
class DDTreeVerifyInput(DraftTreeFields, DFlashVerifyInput):
    """Inputs for one target forward over a draft tree of `draft_token_num` nodes per request, the root first.

    It stays a DFLASH_VERIFY input: attention backends pack its metadata like a DFLASH block's, and only the mask
    says that it is a tree. `positions` are prefix + depth.
    """

    def prepare_for_verify(
        self,
        batch: ScheduleBatch,
        target_worker: TpModelWorker,
        **options: object,
    ) -> tuple[ForwardBatch, bool]:
        """Lay the tree into the slots behind each prefix; DFLASH packs the forward, as it does for its block."""
        if not batch.forward_mode.is_idle():
            self.place_tree(batch, target_worker.model_runner)
        prepared: tuple[ForwardBatch, bool] = super().prepare_for_verify(batch, target_worker, **options)
        return prepared
