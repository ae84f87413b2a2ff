"""Runs a probe program in the target's interpreter and reads its answer.

The program runs under ``probes/bootstrap.py`` in a process group of its own, in an empty temporary folder, with
nothing to read on standard input. Whatever happens to it becomes check results: a crash, a time limit that is over,
an answer that cannot be read. It is killed with its children when the limit is over or this process is interrupted.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..model import CheckOutcome, CheckResult, Tier

PROBES = Path(__file__).resolve().parent / "probes"
BOOTSTRAP = PROBES / "bootstrap.py"
IMPORTS = PROBES / "imports.py"

_TAIL_LINES = 15  # of standard error, in the detail of a probe that gave no answer


def run_probe(
    python: str, folder: Path, program: Path, args: Sequence[str], tier: Tier, time_limit: float
) -> tuple[CheckResult, ...]:
    """The results of every check of a program; one failed result of the program's own name where it gave none.

    ``folder`` holds ``sglang/``; ``time_limit`` is in seconds and covers the whole program.
    """
    command = [python, "-B", str(BOOTSTRAP), "--folder", str(folder.resolve()), str(program.resolve()), *args]
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ddtree-patch-probe-", ignore_cleanup_errors=True) as scratch:
        try:
            status, answer, errors = _run(command, scratch, time_limit)
        except OSError as error:
            return (_no_answer(tier, program, f"{python} cannot be started: {error}", "", started),)
    if status != 0:
        return (_no_answer(tier, program, _reason(status, time_limit), errors, started),)
    try:
        return _results(tier, answer)
    except (LookupError, TypeError, ValueError):
        return (_no_answer(tier, program, "its answer cannot be read", errors, started),)


def _run(command: Sequence[str], scratch: str, time_limit: float) -> tuple[int | None, str, str]:
    """Exit status (None: the time limit was over), standard output, standard error."""
    with subprocess.Popen(
        command,
        cwd=scratch,
        env=_environment(scratch),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            answer, errors = process.communicate(timeout=time_limit)
        except subprocess.TimeoutExpired:
            _kill_group(process)
            return None, *process.communicate()
        except BaseException:  # a signal interrupts this process
            _kill_group(process)
            raise
        return process.returncode, answer, errors


def _environment(scratch: str) -> Mapping[str, str]:
    """The caller's own, without bytecode and with the scratch folder for whatever a library wants to store."""
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": scratch}


def _kill_group(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # gone, or (macOS) only its remains are there
        os.killpg(process.pid, signal.SIGKILL)


def _results(tier: Tier, answer: str) -> tuple[CheckResult, ...]:
    """The checks of the JSON object on the last line."""
    return tuple(
        CheckResult(
            tier=tier,
            id=record["id"],
            outcome=CheckOutcome(record["outcome"]),
            detail=record["detail"],
            seconds=float(record["seconds"]),
        )
        for record in json.loads(answer.splitlines()[-1])["checks"]
    )


def _no_answer(tier: Tier, program: Path, reason: str, errors: str, started: float) -> CheckResult:
    detail = "\n".join([reason, *errors.splitlines()[-_TAIL_LINES:]])
    return CheckResult(tier, program.stem, CheckOutcome.FAILED, detail, time.monotonic() - started)


def _reason(status: int | None, time_limit: float) -> str:
    if status is None:
        return f"no answer within {time_limit:g} seconds"
    if status < 0:
        return f"ended by signal {-status} before it answered"
    return f"ended with status {status} before it answered"
