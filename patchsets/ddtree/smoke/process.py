"""What a scheduler process says of itself: spawned as SGLang spawns it, it shares nothing with whoever started it.

SGLang starts `run_scheduler_process` in a new interpreter, which imports everything again. A patch that is only in
effect in the process that parsed the arguments (one that was made to classes in memory, or lies on a path that is not
passed on) would serve without it.
"""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

Answer = dict[str, str]


def answer() -> Answer:
    """Of whatever process this runs in: which patchset it has, and what DDTREE is there."""
    from sglang.srt.speculative import ddtree_patchset
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

    algorithm = SpeculativeAlgorithm.from_string("DDTREE")
    return {
        "process": str(os.getpid()),
        "patchset": f"{ddtree_patchset.PATCHSET_ID} {ddtree_patchset.PATCHSET_VERSION}",
        "digest": ddtree_patchset.PATCHSET_DIGEST,
        "module": str(ddtree_patchset.__file__),
        "algorithm": f"{algorithm.name}: is_ddtree {algorithm.is_ddtree()}, is_dflash {algorithm.is_dflash()}",
    }


def answer_as_scheduler() -> Answer:
    """Where SGLang would call `run_scheduler_process`: all that a scheduler imports is imported first."""
    from sglang.srt.managers.scheduler import run_scheduler_process

    assert callable(run_scheduler_process)
    return answer()


def says_its_patchset() -> str:
    """A process that was spawned gives the same answer as this one, of the same files."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as processes:
        spawned = processes.submit(answer_as_scheduler).result()
    here = answer()
    assert spawned.pop("process") != here.pop("process"), "it was not another process"
    assert spawned == here, f"the spawned process says {spawned}, and this one {here}"
    assert len(spawned["digest"]) == 64, f"the digest is {spawned['digest']!r}"
    assert spawned["algorithm"] == "DDTREE: is_ddtree True, is_dflash True", spawned["algorithm"]
    return f"a spawned scheduler has {spawned['patchset']} ({spawned['digest'][:12]})"
