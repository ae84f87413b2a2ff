"""What happens during a run, as one JSON object a line (NDJSON): docs/schema/events-1.json."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from ..model import CheckResult, Report, Result, StepResult, Tier

SCHEMA = "ddtree-patch.events/1"


def started(command: str, patchset: str, version: str) -> dict[str, Any]:
    """``patchset`` as it was named, ``version`` of the tool."""
    return {"event": "started", "schema": SCHEMA, "command": command, "patchset": patchset, "version": version}


def progress(message: str) -> dict[str, Any]:
    """Something that takes time has begun. The programs of a tier say its name in front."""
    tier, _, _ = message.partition(": ")
    return {"event": "progress", "message": message, "tier": tier if tier in set(Tier) else ""}


def result(item: Result) -> dict[str, Any]:
    """A step was planned, a check ended, a release of ``matrix`` is done."""
    if isinstance(item, StepResult):
        return {"event": "step", "id": item.id, "outcome": item.outcome.value, "variant": item.variant}
    if isinstance(item, CheckResult):
        ended = {"event": "check", "tier": item.tier.value, "id": item.id, "outcome": item.outcome.value}
        return {**ended, "detail": item.detail, "seconds": round(item.seconds, 3)}
    return {"event": "release", "version": item.version, "verdict": item.verdict.value}


def finished(report: Report) -> dict[str, Any]:
    return {
        "event": "finished",
        "command": report.command,
        "outcome": report.outcome,
        "exit_code": int(report.exit_code),
        "exit_name": report.exit_code.symbol,
        "patchset": asdict(report.patchset),
    }


def line(event: dict[str, Any], at: float) -> bytes:
    """``at``: seconds since the start, by a clock that only goes forward."""
    return json.dumps({**event, "at": round(at, 3)}).encode() + b"\n"
