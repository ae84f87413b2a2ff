"""Which running processes may still have a package's old code loaded.

What a process imported cannot be seen from outside: Python reads a source and closes it. What can be seen is who was
started before a change, belongs to the environment, and either names the package or has native libraries of that
environment in its memory (``/proc/PID/maps``), as everything has that imported torch.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

_ENOUGH = 120  # characters of a command that tell which one it is
_SECRET = re.compile(r"key|token|secret|password|credential", re.IGNORECASE)
_OURS = ("ddtree-patch", "ddtree_patcher")


@dataclass(frozen=True, slots=True)
class Running:
    """A process that may have the old code. ``why`` is what gives it away."""

    pid: int
    command: str
    why: str


@dataclass(frozen=True, slots=True)
class Environment:
    """What a process of an environment shows: the package, the folder that holds it, the prefix of its interpreter."""

    package: str
    folder: Path
    prefix: str  # empty where no interpreter has the folder as its own


def older_than(moment_ns: int, environment: Environment) -> tuple[Running, ...]:
    """The processes of this user (of anybody, for root) that were started before ``moment_ns`` of the system's clock.

    Ourselves, those that started us and other runs of this tool are not among them; who cannot be looked at is not
    either.
    """
    import psutil  # late: `status` starts without it

    mine = {os.getpid()}
    with suppress(psutil.Error):
        mine.update(item.pid for item in psutil.Process().parents())
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME) - (time.time_ns() - moment_ns) / 1e9
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.pid not in mine and _born(process.pid) < since_boot and os.getuid() in (0, process.uids().real):
                found += list(_evidence(process, environment))
    return tuple(sorted(found, key=lambda item: item.pid))


def _born(pid: int) -> float:
    """By when a process was started at the latest, in seconds since the system was booted; to a tick of its clock.

    Not psutil's ``create_time``, which adds the moment of the boot, of which the kernel tells the second alone.
    """
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()  # a program's name may hold anything
    return (int(fields[19]) + 1) / os.sysconf("SC_CLK_TCK")


def _evidence(process: psutil.Process, environment: Environment) -> Iterator[Running]:
    words = process.cmdline()
    if any(Path(word).name in _OURS for word in words[:3]):
        return
    why = ""
    if library := _mapped(process.pid, environment.folder):
        why = f"has {library} loaded"
    elif _names(words, environment.package) and _belongs(process, words, environment):
        why = f"its command names {environment.package}"
    if why:
        yield Running(process.pid, _shown(words) or process.name(), why)


def _shown(words: Sequence[str]) -> str:
    """A command in one line, cut where it tells enough, without what nobody else should read (``--api-key``)."""
    public = []
    for before, word in zip(("", *words), words, strict=False):
        option, equals, _ = word.partition("=")
        if before.startswith("-") and "=" not in before and _SECRET.search(before):
            public.append("…")
        else:
            public.append(f"{option}=…" if equals and _SECRET.search(option) else word)
    command = " ".join(shlex.join(public).split())
    return command if len(command) <= _ENOUGH else f"{command[:_ENOUGH]}…"


def _mapped(pid: int, folder: Path) -> str:
    """A file below the folder that a process has in its memory, relative to it; empty where there is none.

    Not psutil's ``memory_maps``, which has the kernel count every page of a process of a hundred gigabytes.
    """
    with open(f"/proc/{pid}/maps", "rb") as file:
        before = os.fsencode(f"{folder}/")
        for line in file:
            place = line.split(maxsplit=5)[5:]
            if place and place[0].startswith(before):
                return os.fsdecode(place[0].removeprefix(before).strip())
    return ""


def _names(words: Sequence[str], package: str) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(package)}(?!\w)", word) for word in words)


def _belongs(process: psutil.Process, words: Sequence[str], environment: Environment) -> bool:
    """Whether a process would import from the folder: by its interpreter, its arguments, its folder or its path."""
    variables = process.environ()
    inside = [*words[1:], process.cwd(), *variables.get("PYTHONPATH", "").split(os.pathsep)]
    if any(Path(os.path.realpath(item)).is_relative_to(environment.folder) for item in inside if item.startswith("/")):
        return True
    return bool(environment.prefix) and _prefix(process, words, variables) == os.path.realpath(environment.prefix)


def _prefix(process: psutil.Process, words: Sequence[str], variables: Mapping[str, str]) -> str:
    """The prefix of the interpreter that a process runs; a virtual environment shows in how it was called alone."""
    first = words[0] if words else ""
    called = os.path.join(process.cwd(), first) if "/" in first else shutil.which(first, path=variables.get("PATH"))
    for program in (called, process.exe()):
        if program and os.path.isabs(program):
            prefix = os.path.dirname(os.path.dirname(program))
            if os.path.isfile(f"{prefix}/pyvenv.cfg"):
                return os.path.realpath(prefix)
    return os.path.dirname(os.path.dirname(os.path.realpath(process.exe())))
