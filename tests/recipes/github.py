"""Runs a workflow and a composite action as GitHub's runner does, from their own files.

What is not understood (a key, an expression, an action of somebody else) is refused: no file has a part that no test
carries out.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
LOOKUP = re.compile(r"(env|inputs|steps|runner|github)(\.[\w-]+)+")
STEP_KEYS = {"name", "id", "if", "env", "run", "shell", "uses", "with"}
CONDITIONS = {"success()": False, "always()": True, "!cancelled()": True}  # whether it runs after a failure
FILES = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")
Context = Mapping[str, Any]


class Refused(Exception):
    """The file says something that is not understood, or that GitHub would not understand."""


def evaluate(value: object, context: Context) -> str:
    """A value with its expressions put in; GitHub makes nothing of what it does not find, this refuses it."""

    def look_up(match: re.Match[str]) -> str:
        if not LOOKUP.fullmatch(match[1]):
            raise Refused(f"{match[0]} is not understood")
        found: Any = context
        for name in match[1].split("."):
            if not isinstance(found, Mapping) or name not in found:
                raise Refused(f"{match[0]}: there is no {name}")
            found = found[name]
        return str(found)

    return EXPRESSION.sub(look_up, "true" if value is True else "false" if value is False else str(value))


@dataclass
class Step:
    """How a step ended."""

    name: str
    ran: bool = False
    exit_code: int = 0
    log: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""


@dataclass
class Runner:
    """A job's machine: ``workspace`` is where the repository is checked out, ``temp`` the runner's own folder."""

    workspace: Path
    temp: Path
    environment: Mapping[str, str]
    uploaded: list[Path] = field(default_factory=list)
    submodules: bool = False

    def job(self, workflow: Path, **variables: str) -> list[Step]:
        """The steps of a workflow's only job; ``variables`` are set in place of the workflow's own."""
        document = yaml.safe_load(workflow.read_text("utf-8"))
        document["on"] = document.pop(True)  # YAML 1.1 reads the key `on` so
        _only(document, {"name", "on", "permissions", "env", "jobs"})
        (job,) = document["jobs"].values()
        _only(job, {"runs-on", "timeout-minutes", "steps"})
        if set(variables) - set(document["env"]):
            raise Refused(f"the workflow has no {sorted(variables)}")
        return self._steps(job["steps"], {"env": {**document["env"], **variables}})

    def use(self, action: Path, given: Mapping[str, object] = {}) -> Step:
        """A composite action in one step."""
        document = yaml.safe_load((action / "action.yml").read_text("utf-8"))
        _only(document, {"name", "description", "inputs", "outputs", "runs"})
        _only(document["runs"], {"using", "steps"})
        assert document["runs"]["using"] == "composite"
        declared = document["inputs"]
        if unknown := set(given) - set(declared):
            raise Refused(f"the action has no inputs {sorted(unknown)}")
        inputs = {name: evaluate(given.get(name, item["default"]), {}) for name, item in declared.items()}
        steps: dict[str, Any] = {}
        context = {"inputs": inputs, "github": {"action_path": str(action)}, "steps": steps}
        ran = self._steps(document["runs"]["steps"], context, composite=True)
        code = next((step.exit_code for step in ran if step.exit_code), 0)
        set_by_steps = {name: value for step in steps.values() for name, value in step["outputs"].items()}
        if missing := set(document["outputs"]) - set(set_by_steps):
            if not code:
                raise Refused(f"no step has set {sorted(missing)}")
            steps["run"]["outputs"].update(dict.fromkeys(missing, ""))  # what is not found is empty
        outputs = {name: evaluate(item["value"], context) for name, item in document["outputs"].items()}
        log, summary = ("".join(getattr(step, part) for step in ran) for part in ("log", "summary"))
        return Step(document["name"], True, code, log, outputs, summary)

    def _steps(self, steps: list[dict[str, Any]], context: Context, *, composite: bool = False) -> list[Step]:
        context = {"steps": {}, "env": {}, **context, "runner": {"temp": str(self.temp)}}
        ended: list[Step] = []
        for item in steps:
            _only(item, STEP_KEYS)
            condition = EXPRESSION.sub(r"\1", item.get("if", "success()"))
            if condition not in CONDITIONS:
                raise Refused(f"if: {condition} is not understood")
            step = Step(item.get("name", item.get("uses", "")))
            if CONDITIONS[condition] or not any(before.exit_code for before in ended):
                step = self._carry_out(item, context, composite=composite)
                step.name = item.get("name", item.get("uses", ""))
            ended.append(step)
            if "id" in item:
                context["steps"][item["id"]] = {"outputs": step.outputs}
        return ended

    def _carry_out(self, item: dict[str, Any], context: Context, *, composite: bool) -> Step:
        if "run" in item:
            if composite and item.get("shell") != "bash":
                raise Refused("a step of a composite action must name its shell")
            if EXPRESSION.search(item["run"]):
                raise Refused(f"an expression in a script is an injection: {item['run']}")
            return self._script(item, context)
        given = {name: evaluate(value, context) for name, value in item.get("with", {}).items()}
        if item["uses"].startswith("./"):
            if not self.submodules:
                raise Refused(f"{item['uses']} is used before it is checked out")
            return self.use(self.workspace / item["uses"], given)
        action, _, version = item["uses"].partition("@")
        if not re.fullmatch(r"v\d+", version):
            raise Refused(f"{item['uses']} is not pinned to a major version")
        return {
            "actions/checkout": self._checkout,
            "actions/setup-python": self._setup_python,
            "actions/upload-artifact": self._upload,
        }[action](given)

    def _script(self, item: dict[str, Any], context: Context) -> Step:
        files = {name: self.temp / name for name in FILES}
        for path in files.values():
            path.write_text("")
        script = self.temp / "script.sh"
        script.write_text(item["run"])
        own = {**context["env"], **{name: evaluate(value, context) for name, value in item.get("env", {}).items()}}
        variables = {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "RUNNER_TEMP": self.temp,
            "GITHUB_WORKSPACE": self.workspace,
            **files,
            **own,
        }
        strict = ["--noprofile", "--norc", "-eo", "pipefail"] if "shell" in item else ["-e"]
        done = subprocess.run(
            ["bash", *strict, str(script)],
            cwd=self.workspace,
            env={**self.environment, **{name: str(value) for name, value in variables.items()}},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        if files["GITHUB_ENV"].read_text() or files["GITHUB_PATH"].read_text():
            raise Refused("a step must leave the environment of the steps after it alone")
        lines = files["GITHUB_OUTPUT"].read_text().splitlines()
        outputs = {name: value for name, _, value in (line.partition("=") for line in lines)}
        return Step("", True, done.returncode, done.stdout, outputs, files["GITHUB_STEP_SUMMARY"].read_text())

    def _checkout(self, given: Mapping[str, str]) -> Step:
        self.submodules = given.get("submodules") in ("true", "recursive")
        return Step("", True)

    def _setup_python(self, given: Mapping[str, str]) -> Step:
        assert re.fullmatch(r"3\.\d+", given["python-version"])
        return Step("", True)

    def _upload(self, given: Mapping[str, str]) -> Step:
        path = self.workspace / given["path"]
        self.uploaded = [Path(folder, name) for folder, _, names in os.walk(path) for name in sorted(names)]
        assert self.uploaded, f"there is nothing at {path}"
        return Step("", True)


def _only(found: Mapping[str, Any], known: set[str]) -> None:
    if set(found) - known:
        raise Refused(f"{sorted(set(found) - known)} is not understood")
