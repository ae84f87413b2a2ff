"""What a tree saves: verify steps of the trained pair's prompts, by budget, and their ratio to DFLASH's chain.

``make acceptance``. Two sources decode the same prompts under the same settings: the *engine*, a real SGLang that
``ddtree-patch apply`` has patched in a scratch folder, and the *oracle*, plain torch with an exact best-first tree. The
status is 1 where they disagree about one prompt, where DFLASH takes other steps than those that are recorded, or where
a token is not the recorded one. No speed is measured: SGLang's kernels are interpreted here.

This program needs no torch: both sources run in the interpreter that has it, in processes of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

from engine_server import EngineServer, InsideError
from scripts import tree_flags

import wheel_tree
from fetch_wheels import WHEELS, FetchError, fetch
from sglang_releases import SUPPORTED

HERE = Path(__file__).resolve().parent
PAIR = HERE.parent / "models" / "tiny-pair"
TORCH_PYTHON = os.environ.get("DDTREE_TEST_SGLANG_PYTHON") or str(HERE.parents[1] / ".venv-sglang" / "bin" / "python")
WHEEL_FOLDER = Path(os.environ.get("DDTREE_TEST_WHEELS") or WHEELS)
TOPK = 8
BUDGETS = (7, 16, 32)
RECORDED = 64  # tokens a prompt
TIME_LIMIT = 3600.0  # seconds, for one setting of one source on a busy machine


@dataclass(frozen=True)
class Setting:
    """One row of the table."""

    budget: int = 0  # 0: DFLASH
    spine: bool = False

    @property
    def name(self) -> str:
        return f"DDTREE {self.budget}{', spine' * self.spine}" if self.budget else "DFLASH"


@dataclass(frozen=True)
class Prompt:
    name: str  # the group and a number
    tokens: Sequence[int]
    greedy: Sequence[int]  # the 64 tokens that follow, as recorded
    chain_steps: int  # what DFLASH took for them, as recorded

    @property
    def group(self) -> str:
        return self.name.rstrip("0123456789")


@dataclass(frozen=True)
class Decoded:
    """One prompt's."""

    tokens: Sequence[int]
    steps: int


Found = Mapping[Setting, Sequence[Decoded]]  # setting → prompt

SETTINGS = (Setting(), *(Setting(budget, spine) for spine in (False, True) for budget in BUDGETS))


@dataclass(frozen=True)
class Job:
    """One setting of one source."""

    source: str
    setting: Setting

    def run(self, server: EngineServer, prompts: Sequence[Prompt], new_tokens: int) -> Sequence[Decoded]:
        asked = {"folder": str(PAIR), "prompts": [prompt.tokens for prompt in prompts], "tokens": new_tokens}
        ask = self._ask_engine if self.source == "engine" else self._ask_oracle
        return [Decoded(one["output"], one["verify_count"]) for one in ask(server, asked)]

    def _ask_engine(self, server: EngineServer, asked: dict[str, object]) -> list[dict[str, object]]:
        environment = {"SGLANG_DDTREE_SPINE": str(int(self.setting.spine))}
        algorithm, flags = ("DDTREE", tree_flags(self.setting.budget, TOPK)) if self.setting.budget else ("DFLASH", ())
        return server.call("pair.decode", environment, TIME_LIMIT, algorithm=algorithm, flags=list(flags), **asked)

    def _ask_oracle(self, server: EngineServer, asked: dict[str, object]) -> list[dict[str, object]]:
        budget, spine = self.setting.budget, self.setting.spine
        return server.call("pair.expect", {}, TIME_LIMIT, budget=budget, topk=TOPK, spine=spine, **asked)


Results = Mapping[Job, Sequence[Decoded]]


@dataclass
class Progress:
    """Says on standard error what has begun and what is done."""

    total: int
    done: int = 0
    begun: float = field(default_factory=time.monotonic)

    def start(self, job: Job) -> None:
        self._say(f"{job.source}, {job.setting.name}: begins")

    def end(self, job: Job, results: Sequence[Decoded]) -> None:
        self.done += 1
        self._say(f"{job.source}, {job.setting.name}: {sum(one.steps for one in results)} steps")

    def _say(self, text: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self.begun), 60)
        print(f"{minutes:>3}:{seconds:02} {self.done} of {self.total} done · {text}", file=sys.stderr, flush=True)


def run_all(
    jobs: Sequence[Job], servers: Sequence[EngineServer], prompts: Sequence[Prompt], new_tokens: int
) -> Results:
    """Every server takes the next job when it is free; the first failure ends the rest."""
    progress, idle = Progress(len(jobs)), queue.SimpleQueue()
    for server in servers:
        idle.put(server)

    def run(job: Job) -> Sequence[Decoded]:
        server = idle.get()
        try:
            progress.start(job)
            results = job.run(server, prompts, new_tokens)
            progress.end(job, results)
            return results
        finally:
            idle.put(server)

    with ThreadPoolExecutor(len(servers)) as pool:
        futures = {job: pool.submit(run, job) for job in jobs}
        try:
            wait(futures.values(), return_when=FIRST_EXCEPTION)
            failed = [future for future in futures.values() if future.done() and future.exception()]
            if failed:
                failed[0].result()  # raises
            return {job: future.result() for job, future in futures.items()}
        finally:
            for future in futures.values():
                future.cancel()
            for server in servers:  # whoever waits for an answer is told that there is none
                server.close()


def patched_tree(release: str, scratch: Path) -> Path:
    """A release, unpacked and patched by the command line."""
    folder = scratch / release
    wheel_tree.unpack(fetch(release, WHEEL_FOLDER), folder)
    program = Path(sys.executable).parent / "ddtree-patch"
    command = [program, "--quiet", "--root", folder, "apply", "--verify", "static"]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return folder


def read_prompts(count: int) -> Sequence[Prompt]:
    """That many, spread over the groups."""
    items = json.loads((PAIR / "prompts.json").read_text("utf-8"))
    prompts = [Prompt(item["name"], item["prompt"], item["greedy"], item["chain_verify_count"]) for item in items]
    return prompts[:: max(1, len(prompts) // count)][:count]


def draw(title: str, prompts: Sequence[Prompt], found: Found) -> None:
    """Steps a group and in all, and how many times fewer than the chain's."""
    groups = list(dict.fromkeys(prompt.group for prompt in prompts))
    print(f"\n{title}: verify steps (DFLASH's, divided by them)")
    print(f"{'':20}" + "".join(f"{group:>15}" for group in [*groups, "all"]))
    for setting, results in found.items():
        cells = []
        for group in [*groups, ""]:
            inside = [number for number, prompt in enumerate(prompts) if group in ("", prompt.group)]
            mine, chain = (sum(row[number].steps for number in inside) for row in (results, found[SETTINGS[0]]))
            cells.append(f"{mine:>7} ×{chain / mine:4.2f} ")
        print(f"{setting.name:20}" + "".join(f"{cell:>15}" for cell in cells))


def disagreements(prompts: Sequence[Prompt], found: Mapping[str, Found], new_tokens: int) -> Iterator[str]:
    """One line for everything that two sources see differently, or that is not as recorded."""
    for setting in SETTINGS:
        for number, prompt in enumerate(prompts):
            results = {source: of_source[setting][number] for source, of_source in found.items()}
            steps = {source: one.steps for source, one in results.items()}
            if setting == SETTINGS[0] and new_tokens == RECORDED:
                steps["recorded"] = prompt.chain_steps
            if len(set(steps.values())) > 1:
                yield f"{setting.name}, {prompt.name}, steps: " + ", ".join(f"{k} {v}" for k, v in steps.items())
            for source, one in results.items():
                if one.tokens != prompt.greedy[:new_tokens]:
                    yield f"{setting.name}, {prompt.name}: {source} gives other tokens than those that are recorded"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Counts verify steps on the trained pair.")
    parser.add_argument("--release", choices=SUPPORTED, default=SUPPORTED[-1], help="of SGLang [%(default)s]")
    parser.add_argument("--tokens", type=int, default=RECORDED, help=f"new tokens a prompt, 1 to {RECORDED} [all]")
    parser.add_argument("--prompts", type=int, default=12, help="how many, spread over the groups [all 12]")
    parser.add_argument("--source", action="append", choices=("engine", "oracle"), help="this alone; repeatable [both]")
    parser.add_argument("--jobs", type=int, default=2, help="settings decoded at once, a core each [%(default)s]")
    given = parser.parse_args()
    if not (1 <= given.tokens <= RECORDED and 1 <= given.prompts <= 12 and given.jobs >= 1):
        parser.error(f"--tokens is 1 to {RECORDED}, --prompts 1 to 12, --jobs at least 1")
    return given


def main() -> int:
    given = parse()
    prompts = read_prompts(given.prompts)
    sources = dict.fromkeys(given.source or ("engine", "oracle"))
    jobs = [Job(source, setting) for source in sources for setting in SETTINGS]
    try:
        with ExitStack() as stack:
            scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="ddtree-acceptance-"))
            tree = patched_tree(given.release, Path(scratch))
            servers = [stack.enter_context(closing(EngineServer(TORCH_PYTHON, tree))) for _ in range(given.jobs)]
            results = run_all(jobs, servers, prompts, given.tokens)
    except (FetchError, InsideError, subprocess.CalledProcessError) as error:
        sys.exit(f"acceptance: {error}")
    found = {source: {setting: results[Job(source, setting)] for setting in SETTINGS} for source in sources}
    for source, of_source in found.items():
        place = f"SGLang {given.release}" if source == "engine" else "plain torch"
        draw(f"{source} ({place}), {len(prompts)} prompts of {given.tokens} tokens, topk {TOPK}", prompts, of_source)
    wrong = list(disagreements(prompts, found, given.tokens))
    print("\n".join(["", *(wrong or ["every token is the recorded one, and the sources count the same steps"])]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
