"""Runs a job of a .gitlab-ci.yml as GitLab's runner does: its variables, its lines in one shell, its artefacts."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

JOB_KEYS = {"image", "variables", "script", "artifacts"}
ARTIFACT_KEYS = {"when", "expire_in", "paths", "reports"}


@dataclass
class Job:
    """One job in a checkout; ``artefacts`` is what the last run left of what is to be kept, ``missing`` the rest."""

    file: Path
    checkout: Path
    environment: Mapping[str, str]
    artefacts: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    log: str = ""

    def run(self, *, only: str = "", **variables: str) -> int:
        """The exit code. ``variables`` are a pipeline's own, ``only`` leaves out the lines without this word."""
        document: dict[str, Any] = yaml.safe_load(self.file.read_text("utf-8"))
        (job,) = document.values()
        assert set(job) <= JOB_KEYS and set(job["artifacts"]) <= ARTIFACT_KEYS, "a key that is not carried out"
        assert set(variables) <= set(job["variables"]), "no such variable"
        declared = {name: str(value) for name, value in {**job["variables"], **variables}.items()}
        lines = [line for line in job["script"] if only in line]
        assert lines
        done = subprocess.run(
            ["bash", "-c", "\n".join(["set -eo pipefail", *lines])],
            cwd=self.checkout,
            env={**self.environment, "CI": "true", "CI_PROJECT_DIR": str(self.checkout), **declared},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        self.log = done.stdout
        self._keep(job["artifacts"], failed=done.returncode != 0)
        return done.returncode

    def _keep(self, artifacts: Mapping[str, Any], *, failed: bool) -> None:
        """Reports are always uploaded, paths of a job that failed only where ``when`` says so."""
        paths = artifacts["paths"] if not failed or artifacts["when"] == "always" else []
        names = [*paths, *artifacts["reports"].values()]
        self.artefacts = [name for name in names if (self.checkout / name).is_file()]
        self.missing = [name for name in names if name not in self.artefacts]
