"""The test's side of a process that holds one SGLang imported and runs functions of ``inside/`` in forks of itself."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ddtree_patcher.verification.probes_runner import BOOTSTRAP

INSIDE = Path(__file__).resolve().parent / "inside"
PROGRAM = Path(__file__).resolve().parents[2] / "patchsets" / "ddtree" / "e2e" / "server.py"
START_LIMIT = 180.0  # seconds to import SGLang on a busy machine
_GRACE = 30.0  # seconds that the server may take longer than the fork whose time it limits


class InsideError(AssertionError):
    """What ran inside raised, crashed or hung; the message is all that is known of it."""


class EngineServer:
    """One SGLang tree in one interpreter. ``close`` it: nothing of it outlives that, and it ends where we die."""

    def __init__(self, python: str, folder: Path) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="ddtree-engine-", ignore_cleanup_errors=True)
        ours, theirs = socket.socketpair()
        errors = Path(self._scratch.name) / "errors"
        command = [python, "-B", str(BOOTSTRAP), "--folder", str(folder), str(PROGRAM), str(theirs.fileno())]
        with theirs, errors.open("wb") as printed:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                cwd=self._scratch.name,
                env=_environment(self._scratch.name),
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._errors = errors
        self._socket = ours
        self._lines = ours.makefile("rw", encoding="utf-8")
        try:
            assert self._read(START_LIMIT) == {"ready": True}
        except BaseException:
            self.close()
            raise

    def call(
        self, function: str, environment: Mapping[str, str] | None = None, time_limit: float = 240.0, **arguments: Any
    ) -> Any:
        """``call("module.function", …)``: the JSON value of a function of ``inside/``, given JSON arguments."""
        module, _, name = function.rpartition(".")
        request = {
            "module": str(INSIDE / f"{module}.py"),
            "function": name,
            "arguments": arguments,
            "environment": dict(environment or {}),
            "time_limit": time_limit,
        }
        self._lines.write(json.dumps(request) + "\n")
        self._lines.flush()
        answer = self._read(time_limit + _GRACE)
        if answer["error"]:
            raise InsideError(f"{function}: {answer['error']}\n--- it printed ---\n{answer['printed']}")
        return answer["value"]

    def close(self) -> None:
        """The server with whatever it runs is gone when this returns."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        with contextlib.suppress(OSError):
            self._lines.close()
        self._socket.close()
        self._scratch.cleanup()

    def _read(self, time_limit: float) -> Any:
        self._socket.settimeout(time_limit)
        try:
            line = self._lines.readline()
        except TimeoutError:
            line = ""
        if not line:
            tail = self._errors.read_text(encoding="utf-8", errors="replace")[-4000:]
            raise InsideError(f"the engine server does not answer (status {self._process.poll()})\n{tail}")
        return json.loads(line)


def _environment(scratch: str) -> dict[str, str]:
    """Ours, but for what would change how SGLang is found or what it does."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("SGLANG_", "PYTHON", "TRITON_"))}
    return {**ours, "TMPDIR": scratch}
