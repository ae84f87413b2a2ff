"""``diff`` between real releases tells what is known of them, of exactly the code that the patchset touches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sglang_releases import STEPS

pytestmark = pytest.mark.wheels

WORKER, WORKER_V2 = "sglang/srt/speculative/dflash_worker.py", "sglang/srt/speculative/dflash_worker_v2.py"
SCHEDULER = "sglang/srt/managers/scheduler.py"


class Diff:
    """The report of one ``diff``, by what one asks of it."""

    def __init__(self, report: Any) -> None:
        self.report = report
        self.steps = {row["step"]: row for row in report["meaning"]}
        self.rows = {(row["path"], row["symbol"]): row for row in report["changes"]}

    def steps_that(self, prospect: str) -> set[str]:
        return {name for name, row in self.steps.items() if row["prospect"] == prospect}


@pytest.fixture(scope="module")
def diff(shared_tree: Callable[[str], Path], run_cli: Any) -> Callable[[str, str], Diff]:
    """``diff(before, after)``, each pair once."""
    known: dict[tuple[str, str], Diff] = {}

    def get(before: str, after: str) -> Diff:
        if (before, after) not in known:
            done = run_cli("--root", shared_tree(after), "diff", "--snapshot", before, "--exit-code").expect(3)
            known[before, after] = Diff(done.json)
        return known[before, after]

    return get


def test_from_0_5_18_to_0_5_20(diff: Callable[[str, str], Diff]) -> None:
    """0.5.20 resolves its arguments in a pipeline of hooks, and has a namespace for the speculative ones."""
    found = diff("0.5.18", "0.5.20")
    assert tuple(found.steps) == STEPS
    assert found.steps_that("fits_by_another_variant") == {"flags", "validation", "worker-branch", "draft-window"}
    assert found.steps_that("needs_work") == set()
    validation = found.steps["validation"]
    assert (validation["snapshot_variant"], validation["variant"]) == ("algorithm", "pipeline_of_hooks")
    pipeline = found.rows["sglang/srt/arg_groups/pipeline.py", "run_resolution_pipeline"]
    assert (pipeline["change"], pipeline["touched_by"]) == ("added", ["validation"])
    moved = found.rows["sglang/srt/server_args.py", "ServerArgs.speculative_dflash_block_size"]
    assert moved["change"] == "removed" and moved["touched_by"] == ["flags"]
    assert moved["namesake"] == "sglang/srt/arg_groups/fields/spec.py:Spec.speculative_dflash_block_size"
    request = found.rows[SCHEDULER, "Scheduler.handle_generate_request"]
    assert request["details"] == ["parameter mm_input_error added, default None, by keyword only"]
    assert found.steps["requests"]["prospect"] == "still_fits"
    assert found.steps["requests"]["changed_symbols"] == [f"{SCHEDULER}:Scheduler.handle_generate_request"]
    step = found.rows[WORKER_V2, "DFlashWorkerV2._update_target_mamba_state_after_verify"]
    assert step["details"] == ["parameter seq_lens_post_verify added, required, by keyword only"]
    assert step["touched_by"] == ["node-commit"]


def test_most_of_what_changed_is_nothing_to_us(diff: Callable[[str, str], Diff]) -> None:
    found = diff("0.5.18", "0.5.20")
    ours = [row for row in found.rows.values() if row["touched_by"]]
    assert 20 < len(ours) < 60 and len(found.rows) > 1000
    changed = {path for path, _ in found.rows}
    snapshot = found.report["snapshot"]
    assert snapshot["files"] - snapshot["identical_files"] == len(changed)


def test_from_0_5_13_post1_to_0_5_14_the_worker_has_another_shape(diff: Callable[[str, str], Diff]) -> None:
    """The worker that allocates in the step went, and with it the file; the one of the overlap scheduler came."""
    found = diff("0.5.13.post1", "0.5.14")
    assert found.rows[WORKER, ""]["change"] == "file_removed"
    assert found.rows[WORKER_V2, ""]["change"] == "file_added"
    branch = found.steps["worker-branch"]
    assert branch["prospect"] == "fits_by_another_variant"
    assert (branch["snapshot_variant"], branch["variant"]) == ("dflash_worker", "overlap")
    gone = found.rows[WORKER, "DFlashWorker._prepare_for_speculative_decoding"]
    assert (gone["change"], gone["touched_by"]) == ("removed", ["worker-branch"])
    moved = found.rows[WORKER, "DFlashWorker._update_target_mamba_state_after_verify"]
    assert (moved["change"], moved["touched_by"]) == ("moved", ["node-commit"])
    assert moved["moved_to"] == f"{WORKER_V2}:DFlashWorkerV2._update_target_mamba_state_after_verify"
    verify = found.rows["sglang/srt/speculative/dflash_info.py", "DFlashVerifyInput.prepare_for_verify"]
    assert verify["details"] == [
        "parameter page_size is gone",
        "parameter build_custom_mask is gone",
        "parameter target_worker added, required",
        "returns (nothing said) → tuple[ForwardBatch, bool]",
    ]
    assert found.steps_that("needed_since") == {"widths", "row-headroom", "conv-windows", "hidden-states"}
    assert found.steps_that("no_longer_needed") == {"deferred-clear"}


def test_a_downgrade_is_the_same_read_backwards(diff: Callable[[str, str], Diff]) -> None:
    up, down = diff("0.5.13.post1", "0.5.14"), diff("0.5.14", "0.5.13.post1")
    assert down.steps_that("no_longer_needed") == up.steps_that("needed_since")
    assert down.steps_that("needed_since") == up.steps_that("no_longer_needed")
    assert down.steps_that("still_fits") == up.steps_that("still_fits")
    assert down.rows[WORKER, ""]["change"] == "file_added"
    branch = down.steps["worker-branch"]
    assert (branch["snapshot_variant"], branch["variant"]) == ("overlap", "dflash_worker")


def test_what_plan_would_hold_back_needs_work(tree: Callable[..., Path], run_here: Any) -> None:
    """A statement that tells this release's shape from an older one was rewritten: neither command takes the older."""
    site = tree("0.5.18")
    worker = site / WORKER_V2
    before, after = b"        if batch.return_logprob:\n", b"        if batch.return_logprob is True:\n"
    assert worker.read_bytes().count(before) == 1
    worker.write_bytes(worker.read_bytes().replace(before, after))
    found = Diff(run_here("--root", site, "diff").expect(0).json)
    assert found.steps_that("needs_work") == {"worker-branch", "node-commit"}
    planned = run_here("--root", site, "plan").expect(4).outcomes
    assert planned == {name: row["outcome"] for name, row in found.steps.items()}
    branch, waits = found.steps["worker-branch"], found.steps["node-commit"]
    assert (branch["path"], branch["snapshot_variant"]) == (WORKER_V2, "overlap_logprobs")
    assert after in worker.read_bytes().splitlines(True)[branch["line"] - 1]
    assert waits["reason"] == "node-commit waits for worker-branch"


def test_on_a_terminal_of_60_columns(shared_tree: Callable[[str], Path], run_cli: Any) -> None:
    site = shared_tree("0.5.13.post1")
    done = run_cli("--format", "text", "--root", site, "diff", "--snapshot", "0.5.14", env={"COLUMNS": "60"}).expect(0)
    text = done.stdout
    assert "From 0.5.14 to 0.5.13.post1, an earlier release\n" in text
    assert "Changed in the code that we touch\n" in text and "; -v lists" in " ".join(text.split())
    body = text.partition("From 0.5.14")[2].rpartition("\n\ndiff: ok")[0].splitlines()
    assert len(body) > 50 and max(map(len, body)) <= 60
