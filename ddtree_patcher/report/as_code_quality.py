"""GitLab's code quality report: a JSON array, an issue for every finding."""

from __future__ import annotations

import json

from ..model import Report, Severity
from .findings import findings_of

_SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.NOTE: "info"}


def render(report: Report) -> bytes:
    issues = [
        {
            "description": item.text,
            "check_name": item.said.code,
            "fingerprint": item.fingerprint,
            "severity": _SEVERITIES[item.said.severity],
            "location": {"path": item.path, "lines": {"begin": item.line}},
        }
        for item in findings_of(report)
    ]
    return json.dumps(issues, indent=2, ensure_ascii=True).encode() + b"\n"
