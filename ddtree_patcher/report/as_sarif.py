"""SARIF 2.1.0 (OASIS): one run, a result for every finding. It says nothing that changes from run to run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

from ..model import ExitCode, History, Place, Report
from .findings import Finding, findings_of

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
BASE = "%SRCROOT%"  # what code scanning takes for the top of a repository
# The command did what it was asked for, and its findings are the answer.
_ANSWERED = (ExitCode.OK, ExitCode.CHANGES, ExitCode.CONFLICT, ExitCode.VERIFICATION_FAILED)


def render(report: Report, version: str, statuses: Mapping[str, str]) -> bytes:
    """``version`` is the tool's own; ``statuses`` has the help of every word that is a rule."""
    found = findings_of(report)
    rules = sorted({item.said.code for item in found})
    run = {
        "tool": {
            "driver": {"name": "ddtree-patch", "version": version, "rules": [_rule(word, statuses) for word in rules]}
        },
        "automationDetails": {"id": f"ddtree-patch/{report.command}/"},
        "invocations": [
            {
                "executionSuccessful": report.exit_code in _ANSWERED,
                "exitCode": int(report.exit_code),
                "exitCodeDescription": report.exit_code.symbol,
            }
        ],
        "originalUriBaseIds": {BASE: {"description": {"text": "The folder that holds the package, site-packages."}}},
        "results": [_result(item, rules) for item in found],
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=True).encode() + b"\n"


def _rule(word: str, statuses: Mapping[str, str]) -> dict[str, Any]:
    """The help is the word's section of docs/statuses.md."""
    body = statuses.get(word, "")
    plain = " ".join(body.replace("**", "").replace("`", "").split())
    where = f"docs/statuses.md#{word}"
    return {
        "id": word,
        "name": word,
        "shortDescription": {"text": word.replace("_", " ")},
        **({"fullDescription": {"text": plain}} if plain else {}),
        "help": {"text": f"{plain} ({where})".strip(), "markdown": f"{body}\n\n`{where}`".strip()},
    }


def _result(item: Finding, rules: Sequence[str]) -> dict[str, Any]:
    said = item.said
    properties: dict[str, Any] = {
        name: value for name in ("step", "expected", "remedy") if (value := getattr(said, name))
    }
    if said.history != History():
        properties["history"] = asdict(said.history)
    related = [_related(number, place) for number, place in enumerate(said.candidates, 1)]
    return {
        "ruleId": said.code,
        "ruleIndex": rules.index(said.code),
        "level": said.severity.value,
        "message": {"text": item.text},
        "locations": [{"physicalLocation": _physical(item.path, item.line)}],
        **({"relatedLocations": related} if related else {}),
        "partialFingerprints": {"ddtreePatch/v1": item.fingerprint},
        **({"properties": properties} if properties else {}),
    }


def _physical(path: str, line: int) -> dict[str, Any]:
    return {"artifactLocation": {"uri": quote(path), "uriBaseId": BASE}, "region": {"startLine": line}}


def _related(number: int, place: Place) -> dict[str, Any]:
    """A candidate, with the code around it."""
    physical = _physical(place.path, max(place.line, 1))
    if place.context:
        first, last = place.context[0][0], place.context[-1][0]
        text = "\n".join(line for _, line in place.context)
        physical["contextRegion"] = {"startLine": first, "endLine": last, "snippet": {"text": text}}
    return {"id": number, "message": {"text": f"candidate, score {place.score:.2f}"}, "physicalLocation": physical}
