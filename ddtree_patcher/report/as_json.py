"""The JSON envelope: one object, stable across runs but for the seconds of checks."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from ..model import Report


def envelope(report: Report) -> dict[str, Any]:
    """The report as plain values, in the order in which people read it."""
    return {
        "schema": f"ddtree-patch.{report.command}/1",
        "outcome": report.outcome,
        "exit_code": int(report.exit_code),
        "exit_name": report.exit_code.symbol,
        "installation": dict(report.installation),
        "patchset": asdict(report.patchset),
        "steps": [
            {
                "id": step.id,
                "outcome": step.outcome.value,
                "variant": step.variant,
                "files": list(step.files),
                "summary": step.summary,
            }
            for step in report.steps
        ],
        "files": [{**asdict(item), "status": None, "state": item.status.value} for item in report.files],
        "checks": [
            {
                "tier": check.tier.value,
                "id": check.id,
                "outcome": check.outcome.value,
                "seconds": round(check.seconds, 3),
                "detail": check.detail,
            }
            for check in report.checks
        ],
        "diagnostics": [{**asdict(item), "severity": item.severity.value} for item in report.diagnostics],
        **report.extra,
    }


def render(report: Report) -> str:
    value = envelope(report)
    for item in value["files"]:
        del item["status"]
    return json.dumps(value, indent=2, ensure_ascii=False)
