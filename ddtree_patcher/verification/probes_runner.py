"""Runs a probe program in the target's interpreter and reads its answer.

The program runs under ``probes/bootstrap.py`` in a process group of its own, in an empty temporary folder, with
nothing to read on standard input. Whatever happens to it becomes check results: a crash, a time limit that is over,
an answer that cannot be read. Its children are killed with it.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..model import Cell, CheckOutcome, CheckResult, Tier
from .supervisor import Ended, Say, supervise

PROBES = Path(__file__).resolve().parent / "probes"
BOOTSTRAP = PROBES / "bootstrap.py"
IMPORTS = PROBES / "imports.py"
BYTECODE_VARIABLE = "DDTREE_PATCH_PROBE_BYTECODE"  # as ``bootstrap.py`` reads it

_TAIL_LINES, _TAIL = 15, 4000  # lines and characters of standard error, for a probe that gave no answer
_LINE = 200  # characters of a line that says what is going on


def run_probe(
    python: str,
    folder: Path,
    program: Path,
    args: Sequence[str],
    tier: Tier,
    time_limit: float,
    say: Say = lambda message: None,
    bytecode: str = "",
) -> tuple[CheckResult, ...]:
    """The results of every check of a program; one failed result of the program's own name where it gave none.

    ``folder`` holds ``sglang/``; ``time_limit`` is in seconds and covers the whole program; ``say`` is told, now and
    then, what it is doing. What is compiled is kept in the folder ``bytecode``, where one is named.
    """
    command = [python, "-B", str(BOOTSTRAP), "--folder", str(folder.resolve()), str(program.resolve()), *args]
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ddtree-patch-probe-", ignore_cleanup_errors=True) as scratch:
        try:
            ended = supervise(
                command,
                Path(scratch),
                _environment(scratch, bytecode),
                time_limit,
                lambda line: say(f"{tier}: {_plain(line)[:_LINE]}"),
            )
        except OSError as error:
            return (_no_answer(tier, program, f"{python} cannot be started: {error}", "", started),)
    if ended.status != 0:
        return (_no_answer(tier, program, _reason(ended, time_limit), ended.errors, started),)
    try:
        return _results(tier, ended.answer)
    except (LookupError, TypeError, ValueError):
        return (_no_answer(tier, program, "its answer cannot be read", ended.errors, started),)


@contextmanager
def kept_bytecode() -> Iterator[str]:
    """A folder for the bytecode of programs that run on one tree: the one that the caller's environment names, or ours.

    Ours does not outlive this.
    """
    with tempfile.TemporaryDirectory(prefix="ddtree-patch-bytecode-", ignore_cleanup_errors=True) as folder:
        yield os.environ.get(BYTECODE_VARIABLE) or folder


def _environment(scratch: str, bytecode: str) -> Mapping[str, str]:
    """The caller's own, without bytecode and with the scratch folder for whatever a library wants to store."""
    kept = {BYTECODE_VARIABLE: bytecode} if bytecode else {}
    return {**os.environ, **kept, "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": scratch}


def _results(tier: Tier, answer: str) -> tuple[CheckResult, ...]:
    """The checks of the JSON object on the last line."""
    return tuple(
        CheckResult(
            tier=tier,
            id=record["id"],
            outcome=CheckOutcome(record["outcome"]),
            detail=_plain(record["detail"]),
            seconds=float(record["seconds"]),
            rows=tuple({_plain(name): _cell(value) for name, value in row.items()} for row in record["rows"]),
        )
        for record in json.loads(answer.splitlines()[-1])["checks"]
    )


def _no_answer(tier: Tier, program: Path, reason: str, errors: str, started: float) -> CheckResult:
    detail = "\n".join([reason, *errors[-_TAIL:].splitlines()[-_TAIL_LINES:]])
    return CheckResult(tier, program.stem, CheckOutcome.FAILED, _plain(detail), time.monotonic() - started)


def _plain(text: str) -> str:
    """Without what a terminal or XML would choke on: colours of a server's log, control characters, lone surrogates."""
    text = re.sub(r"\x1b\[[0-9;?]*[@-~]", "", text)
    return "".join(letter if letter.isprintable() or letter in "\n\t" else " " for letter in text)


def _cell(value: Cell) -> Cell:
    return _plain(value) if isinstance(value, str) else value


def _reason(ended: Ended, time_limit: float) -> str:
    where = f" ({ended.progress})" if ended.progress else ""
    if ended.status is None:
        return f"no answer within {time_limit:g} seconds{where}"
    if ended.status < 0:
        return f"ended by signal {-ended.status} before it answered{where}"
    return f"ended with status {ended.status} before it answered{where}"
