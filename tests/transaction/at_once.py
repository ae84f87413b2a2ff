"""One of many processes at work on one installation: the same command again and again, as the command line runs it.

``python at_once.py SECONDS SEED [SHARED OPTION …] COMMAND [OPTION …]``: prints how often each way to end was seen, as
JSON. With a seed other than 0 the command runs in children that are killed at random moments; those ends are counted.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import random
import signal
import sys
import time
from collections import Counter

from ddtree_patcher.cli import main

Ending = tuple[str, str, int, str, tuple[str, ...]]


def once(words: list[str]) -> Ending:
    """The command, its outcome, its exit code, what its errors say, and the codes of its diagnostics."""
    code: object = None
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
        try:
            main(["--format", "json", *words], prog_name="ddtree-patch")
        except SystemExit as end:
            code = end.code
    report = json.loads(out.getvalue())
    errors = [f"{item['summary']} {item['detail']}" for item in report["diagnostics"] if item["severity"] == "error"]
    said = "" if report["exit_name"] == "locked" else "; ".join(errors)
    codes = tuple(item["code"] for item in report["diagnostics"])
    assert isinstance(code, int)
    return report["schema"].removeprefix("ddtree-patch.").removesuffix("/1"), report["outcome"], code, said, codes


def live(until: float, words: list[str]) -> None:
    seen = Counter[Ending]()
    while time.monotonic() < until:
        seen[once(words)] += 1
    json.dump([[*ending, times] for ending, times in seen.items()], sys.stdout)


def die(until: float, words: list[str], chance: random.Random) -> None:
    """Children that work until they are killed. What they saw dies with them; what it must not be ends the process."""
    killed = 0
    while time.monotonic() < until:
        child = os.fork()
        if child == 0:
            while once(words)[1] in ("ok", "clean", "locked"):
                pass
            os._exit(1)
        time.sleep(chance.uniform(0.01, 0.2))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"{words} ended by itself"
        killed += 1
    json.dump([["apply" if "apply" in words else "revert", "killed", -signal.SIGKILL, "", [], killed]], sys.stdout)


if __name__ == "__main__":
    for late in ("operations.applying", "operations.reverting", "operations.verifying", "codemods", "report.as_json"):
        importlib.import_module(f"ddtree_patcher.{late}")  # so that the time is spent on work
    print("ready", flush=True)
    sys.stdin.readline()
    until, seed, words = time.monotonic() + float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    live(until, words) if not seed else die(until, words, random.Random(seed))
