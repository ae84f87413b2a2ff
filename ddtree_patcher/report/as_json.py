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
        "files": [
            {
                "path": item.path,
                "state": item.status.value,
                "added": item.added,
                "pristine_sha256": item.pristine_sha256,
                "desired_sha256": item.desired_sha256,
                "current_sha256": item.current_sha256,
            }
            for item in report.files
        ],
        "checks": [
            {
                "tier": check.tier.value,
                "id": check.id,
                "outcome": check.outcome.value,
                "seconds": round(check.seconds, 3),
                "detail": check.detail,
                "rows": [dict(row) for row in check.rows],
            }
            for check in report.checks
        ],
        "diagnostics": [{**asdict(item), "severity": item.severity.value} for item in report.diagnostics],
        **report.extra,
    }


def render(report: Report) -> str:
    return json.dumps(envelope(report), indent=2, ensure_ascii=False)
