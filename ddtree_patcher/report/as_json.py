"""The JSON envelope: one object, stable across runs but for the seconds of checks."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from ..model import CheckResult, Diagnostic, Place, ReleaseResult, Report, StepResult


def envelope(report: Report) -> dict[str, Any]:
    """The report as plain values, in the order in which people read it."""
    return {
        "schema": f"ddtree-patch.{report.command}/1",
        "outcome": report.outcome,
        "exit_code": int(report.exit_code),
        "exit_name": report.exit_code.symbol,
        "installation": dict(report.installation),
        "patchset": asdict(report.patchset),
        "steps": _steps(report.steps),
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
        "checks": _checks(report.checks),
        "diagnostics": _diagnostics(report.diagnostics),
        **({"releases": [_release(item) for item in report.releases]} if report.releases else {}),
        **({"capabilities": [asdict(item) for item in report.capabilities]} if report.capabilities else {}),
        **report.extra,
    }


def _steps(steps: Iterable[StepResult]) -> list[dict[str, Any]]:
    return [
        {
            "id": step.id,
            "outcome": step.outcome.value,
            "variant": step.variant,
            "files": list(step.files),
            "summary": step.summary,
        }
        for step in steps
    ]


def _checks(checks: Iterable[CheckResult]) -> list[dict[str, Any]]:
    return [
        {
            "tier": check.tier.value,
            "id": check.id,
            "outcome": check.outcome.value,
            "seconds": round(check.seconds, 3),
            "detail": check.detail,
            "rows": [dict(row) for row in check.rows],
        }
        for check in checks
    ]


def _diagnostics(diagnostics: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    return [
        {
            **asdict(item),
            "severity": item.severity.value,
            "candidates": [_place(place) for place in item.candidates],
        }
        for item in diagnostics
    ]


def _place(place: Place) -> dict[str, Any]:
    context = [{"line": line, "text": text} for line, text in place.context]
    return {"path": place.path, "line": place.line, "score": place.score, "context": context}


def _release(item: ReleaseResult) -> dict[str, Any]:
    return {
        "version": item.version,
        "verdict": item.verdict.value,
        "exit_code": int(item.verdict.exit_code),
        "wheel": item.wheel,
        "wheel_sha256": item.wheel_sha256,
        "release": dict(item.standing),
        "steps": _steps(item.steps),
        "checks": _checks(item.checks),
        "diagnostics": _diagnostics(item.diagnostics),
    }


def render(report: Report) -> str:
    text = json.dumps(envelope(report), indent=2, ensure_ascii=False)
    return text.replace("##[", "##\\u005b")  # the same string; as it stands GitHub's runner takes it for a command
