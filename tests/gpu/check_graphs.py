"""DDTREE on a CUDA device: real graphs, real FlashInfer and Triton kernels, no waiting in a decode step, step times.

    PYTHON tests/gpu/check_graphs.py [--folder FOLDER] [--backend flashinfer] [--backend triton] [--timing]

PYTHON is an interpreter with everything that SGLang needs, on a machine with a CUDA device. FOLDER holds the patched
``sglang/``; without it the interpreter's own installation is meant. No other package is needed: neither pytest nor the
tool, and the models are tiny random ones that are made here. It takes some minutes, most of them for imports.

For each attention backend, by default those that are installed, one process a run decodes the same requests plainly,
with DFLASH and with DDTREE, with graphs and without. It asserts that

- the target's graphs are captured with W rows a request and a mask, the drafter's with B rows and none, and DFLASH's
  with B rows and none;
- every decode step replays one graph of the drafter and one of the target, the smallest that its batch fits in;
- greedy tokens are those of plain decoding, and graphs change no acceptance length;
- the tree's part of a step never makes the host wait for the device (``torch.cuda.set_sync_debug_mode("error")``), on
  releases whose scheduler overlaps steps.

``--timing`` prints the time of a decode step of each run over that of plain decoding. The models are so small that this
is the time of launching: it says what a tree costs the host, not what it gains.

Exit status: 0 all held; 1 something did not; 77 there was nothing to run on, which is said and is no pass.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "e2e" / "inside"), str(Path(__file__).parent)]  # graph_watch and waiting
NOTHING_TO_RUN_ON = 77
BACKENDS = ("flashinfer", "triton")
BLOCK = 4  # of the tiny drafter
SIZES = (4, 1)  # of the batches that graphs are captured for
LIMIT = 600  # seconds for one process


@dataclass(frozen=True)
class Case:
    """One process."""

    backend: str
    algorithm: str
    budget: int = 0  # of DDTREE
    graphs: bool = True

    @property
    def title(self) -> str:
        tree = f" budget {self.budget}" if self.algorithm == "DDTREE" else ""
        return f"{self.backend:10} {self.algorithm}{tree}{'' if self.graphs else ' without graphs'}"

    @property
    def width(self) -> int:
        return max(self.budget + 1, BLOCK)


ALGORITHMS = (
    ("NONE", 0, True),
    ("DFLASH", 0, True),
    ("DDTREE", 7, False),
    ("DDTREE", 7, True),
    ("DDTREE", 16, True),
    ("DDTREE", 64, True),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--folder", help="holds the patched sglang/")
    parser.add_argument("--backend", action="append", choices=BACKENDS, help="may be given again")
    parser.add_argument("--timing", action="store_true", help="print the time of a decode step too")
    parser.add_argument("--case", help=argparse.SUPPRESS)  # what a process of ours is asked for
    options = parser.parse_args()
    if options.folder:
        sys.path.insert(0, options.folder)
    if options.case:
        print(json.dumps(run_case(Case(**json.loads(options.case)), bool(options.timing))))
        return 0
    if reason := nothing_to_run_on():
        print(f"NOT RUN: {reason}", file=sys.stderr)
        return NOTHING_TO_RUN_ON
    backends = options.backend or [name for name in BACKENDS if importlib.util.find_spec(name)]
    if not backends:
        print(f"NOT RUN: neither of {', '.join(BACKENDS)} is installed", file=sys.stderr)
        return NOTHING_TO_RUN_ON
    problems = [problem for backend in backends for problem in check_backend(backend, options)]
    for problem in problems:
        print(f"FAILED: {problem}")
    print(f"{len(problems)} problems" if problems else "all held")
    return 1 if problems else 0


def nothing_to_run_on() -> str:
    """Why nothing can be run; empty where it can."""
    try:
        import torch
    except ImportError:
        return f"{sys.executable} has no torch: use the interpreter that SGLang runs in"
    if not torch.cuda.is_available():
        return f"torch {torch.__version__} sees no CUDA device. Nothing was checked: run this on a machine with one"
    if not importlib.util.find_spec("sglang"):
        return "there is no sglang: name the folder that holds the patched one with --folder"
    if not importlib.util.find_spec("sglang.srt.speculative.ddtree_worker"):
        return "this sglang is not patched: run `ddtree-patch apply` first"
    return ""


def check_backend(backend: str, options: argparse.Namespace) -> Iterator[str]:
    """Runs the cases one after the other and says what is wrong with them."""
    runs: dict[Case, dict[str, Any]] = {}
    for algorithm, budget, graphs in ALGORITHMS:
        case = Case(backend, algorithm, budget, graphs)
        try:
            runs[case] = run_in_process(case, options)
        except RuntimeError as error:
            yield f"{case.title}: {error}"
            continue
        run = runs[case]
        if len(run["seconds"]) and options.timing:
            plain = runs.get(Case(backend, "NONE"), run)
            ratio = _median(run["seconds"]) / _median(plain["seconds"])
            print(f"{case.title}: {1000 * _median(run['seconds']):.2f} ms a step, {ratio:.2f} of plain decoding's")
        problems = [*check_run(case, run), *compare(case, runs)]
        print(f"{case.title}: {'; '.join(problems) or 'holds'}, {run['device']}", flush=True)
        yield from (f"{case.title}: {problem}" for problem in problems)


def check_run(case: Case, run: dict[str, Any]) -> Iterator[str]:
    """What one run says about itself."""
    if run["faults"]:
        yield f"KV slots do not add up: {run['faults']}"
    if case.algorithm == "NONE" or not case.graphs:
        return
    if run["captured"] != expected_graphs(case):
        yield f"captured {run['captured']}, not {expected_graphs(case)}"
    if not run["steps"]:
        yield "no decode step ran"
    for step in run["steps"]:
        size = min(size for size in SIZES if size >= step["requests"])
        if (step["draft"], step["target"]) != ([size], [size]):
            yield f"a step of {step['requests']} requests replayed {step}, not one graph of size {size} each"
    if case.algorithm == "DDTREE" and run["overlap"] and not run["watched"]:
        yield "no function of the tree was watched for waiting"


def expected_graphs(case: Case) -> list[dict[str, Any]]:
    watch = importlib.import_module("graph_watch")
    value: list[dict[str, Any]] = watch.expected_graphs(SIZES, BLOCK, case.width if case.algorithm == "DDTREE" else 0)
    return value


def compare(case: Case, runs: dict[Case, dict[str, Any]]) -> Iterator[str]:
    """This run beside those before it."""
    plain = runs.get(Case(case.backend, "NONE"))
    if plain is None:
        yield "plain decoding did not run: there is nothing to compare with"
    elif runs[case]["outputs"] != plain["outputs"]:
        yield f"other tokens than plain decoding: {runs[case]['outputs']}, not {plain['outputs']}"
    eager = runs.get(Case(case.backend, case.algorithm, case.budget, graphs=False))
    if eager is not None and runs[case]["accept_lengths"] != eager["accept_lengths"]:
        yield f"graphs accept {runs[case]['accept_lengths']}, forwards {eager['accept_lengths']}"


def run_in_process(case: Case, options: argparse.Namespace) -> dict[str, Any]:
    """The value of ``run_case``; one engine a process, as SGLang keeps global state and CUDA survives no fork."""
    command = [sys.executable, __file__, "--case", json.dumps(asdict(case))]
    command += ["--folder", options.folder] if options.folder else []
    command += ["--timing"] if options.timing else []
    with tempfile.TemporaryDirectory() as scratch:
        environment = {
            **os.environ,
            "SGLANG_DISTRIBUTED_INIT_METHOD_OVERRIDE": f"file://{scratch}/rendezvous",
            "TMPDIR": scratch,
        }
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=LIMIT, env=environment, cwd=scratch, check=False
            )
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"no answer within {LIMIT} seconds") from None
    if done.returncode != 0:
        raise RuntimeError(f"ended with status {done.returncode}:\n{done.stderr[-4000:]}")
    value: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return value


def run_case(case: Case, timing: bool) -> dict[str, Any]:
    """In a process of its own: one engine, two batches."""
    import torch

    driver = load_driver()
    graph_watch = importlib.import_module("graph_watch")
    waiting = importlib.import_module("waiting")
    runner = graph_watch.graph_runner()
    watch = graph_watch.GraphWatch(runner)
    models = driver.models.TinyModels(block_size=BLOCK).write(tempfile.mkdtemp())
    more = ["--attention-backend", case.backend, "--dtype", "float16", *no_prefill_graphs(runner.flags)]
    more += [*runner.flags, *map(str, SIZES)] if case.graphs else ["--disable-cuda-graph"]
    if case.algorithm == "DDTREE":
        more += ["--speculative-ddtree-budget", str(case.budget), "--speculative-ddtree-topk", "4"]
    engine = driver.engine.Engine(driver.flags.server_flags(models, case.algorithm, more))
    watch.take_replayed()  # those of the start
    overlap = bool(engine.scheduler.enable_overlap)
    watched = waiting.forbid(overlap and case.algorithm == "DDTREE")
    if case.graphs and case.algorithm != "NONE":
        engine.after_batch.append(watch.note_step)
    seconds = [] if not timing else waiting.time_steps(engine)
    answers = [answer for requests in batches(driver.engine.Request) for answer in engine.generate(*requests)]
    return {
        "outputs": {answer.name: answer.output for answer in answers},
        "accept_lengths": {answer.name: answer.accept_lengths for answer in answers},
        "captured": [asdict(captured) for captured in watch.captured],
        "steps": [asdict(step) for step in watch.steps],
        "faults": list(engine.balance().faults),
        "overlap": overlap,
        "watched": watched,
        "seconds": seconds,
        "device": torch.cuda.get_device_name(),
    }


def no_prefill_graphs(flags: Sequence[str]) -> list[str]:
    """Of the flags for graphs of decode steps alone, those that switch off the others."""
    return [flag for flag in flags if "piecewise" in flag or "prefill" in flag]


def batches(request: Any) -> list[list[Any]]:
    """Four requests and then three: they end one by one, so that batches of every size up to four decode."""
    prompts = ([5, 6, 7, 8, 9, 10, 11], [100, 101, 102], [3] * 20 + [4, 5], [200, 17, 33, 40])
    return [
        [request(f"{size}-{index}", ids, 24 + 3 * index) for index, ids in enumerate(prompts[:size])] for size in (4, 3)
    ]


def load_driver() -> Any:
    """The engine's driver as a package, without what lies above it, which needs the tool's own packages."""
    folder = TESTS.parent / "patchsets" / "ddtree" / "e2e"
    name = "ddtree_patch_probe"
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)
    for module in ("engine", "flags", "models"):
        importlib.import_module(f"{name}.{module}")
    return package


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


if __name__ == "__main__":
    sys.exit(main())
