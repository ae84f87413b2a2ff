"""action.yml and the workflow that uses it: green on what pip installs, red with the documented code elsewhere."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from .conftest import PATCHED, SGLANG, edit, site_of
from .github import Refused, Runner, Step, evaluate
from .machine import RECIPES, REPOSITORY, Machine

pytestmark = [pytest.mark.wheels, pytest.mark.slow]

Use = Callable[..., Step]
COMMANDS = ("apply", "verify", "status", "plan", "doctor", "revert")


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory, machine: Machine, source: Path) -> Runner:
    """A runner; its repository has this one as a submodule."""
    base = tmp_path_factory.mktemp("runner")
    workspace, temp = base / "workspace", base / "temp"
    temp.mkdir()
    shutil.copytree(source, workspace / "ddtree-patch")
    return Runner(workspace, temp, machine.environment(base / "home"))


@pytest.fixture(scope="module")
def steps(runner: Runner) -> Mapping[str, Step]:
    """The workflow, run."""
    ran = runner.job(RECIPES / "github/workflow.yml", SGLANG=SGLANG, TIER="static")
    return {step.name: step for step in ran}


@pytest.fixture
def use(runner: Runner, steps: Mapping[str, Step]) -> Use:
    """``use(command, **inputs)``: the action once more, after the workflow; ``_`` for ``-`` in their names."""

    def call(command: str, **inputs: str) -> Step:
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        given = {"python": ".venv/bin/python", "tier": "static", **given}
        return runner.use(runner.workspace / "ddtree-patch", {"command": command, **given})

    return call


def test_the_workflow_is_green(steps: Mapping[str, Step], runner: Runner) -> None:
    assert all(step.ran and step.exit_code == 0 for step in steps.values()), [step.log for step in steps.values()]
    applied, verified = steps["Apply the patch"], steps["Verify the patch"]
    assert (applied.outputs["outcome"], applied.outputs["exit-code"]) == ("ok", "0")
    report = json.loads(Path(applied.outputs["report"]).read_text())
    assert report["schema"] == "ddtree-patch.apply/1"
    assert {step["outcome"] for step in report["steps"]} == {"applied", "not_needed"}
    assert "apply: ok" in applied.log and "| enum | applied |" in applied.summary
    suite = ElementTree.parse(verified.outputs["junit"]).getroot()[0]
    assert int(suite.get("tests", 0)) > 50 and suite.get("failures") == "0"
    assert sorted(path.name for path in runner.uploaded) == ["apply.json", "verify.json", "verify.xml"]


def test_what_makes_it_red(use: Use, runner: Runner, other_build: Path) -> None:
    """In one job, one after the other: an edit, a patch that was taken out, and a build that the patch does not fit."""
    environment = runner.workspace / ".venv"
    assert use("status").exit_code == 0
    pristine_size = (site_of(environment) / PATCHED).stat().st_size
    edit(environment)
    verified, looked = use("verify"), use("status")
    assert (verified.exit_code, verified.outputs["exit-code"]) == (5, "5")
    assert verified.outputs["outcome"] == "verification_failed" and PATCHED in verified.log
    assert ElementTree.parse(verified.outputs["junit"]).findall(".//failure")
    assert (looked.exit_code, looked.outputs["outcome"]) == (3, "drifted")

    (site_of(environment) / PATCHED).unlink()
    install = f"python -m pip --python .venv/bin/python install --force-reinstall {SGLANG}"
    assert runner._script({"run": install}, {"env": {}}).exit_code == 0
    assert (site_of(environment) / PATCHED).stat().st_size < pristine_size
    wiped, planned = use("status"), use("plan")
    assert (wiped.exit_code, wiped.outputs["outcome"], planned.exit_code) == (3, "wiped", 3)
    assert use("apply").exit_code == 0 and use("status").outputs["outcome"] == "applied"
    untried = use("verify", tier="import")  # nobody installed what SGLang needs: that is no reason to be green
    assert untried.exit_code == 5 and "torch" in untried.log
    assert use("revert").exit_code == 0 and use("status").outputs["outcome"] == "clean"

    install = f"python -m pip --python .venv/bin/python install --force-reinstall --no-deps {other_build}"
    assert runner._script({"run": install}, {"env": {}}).exit_code == 0
    refused = use("apply")
    assert (refused.exit_code, refused.outputs["outcome"]) == (4, "conflict") and PATCHED in refused.log
    assert use("status").exit_code == 3


@pytest.mark.parametrize("name", ["command", "python", "root", "tier", "patchset", "allow-drift", "version"])
def test_inputs_are_data(use: Use, runner: Runner, name: str) -> None:
    """Nothing of an input is carried out by the shell, and none is taken for an option."""
    value = '--help $(touch made)`touch made`"; touch made; #'
    before = sorted(path.name for path in runner.workspace.iterdir())
    ended = use(**{"command": "verify", "python": "no/python", name.replace("-", "_"): value})
    assert ended.exit_code in (1, 2) if name == "version" else ended.exit_code == 2, ended.log
    assert sorted(path.name for path in runner.workspace.iterdir()) == before
    assert "\nOptions:" not in ended.log and "Install Options" not in ended.log


def test_an_unknown_command_is_named(use: Use) -> None:
    ended = use("matrix")
    assert ended.exit_code == 2 and "::error" in ended.log and "apply, verify, status" in ended.log


def test_the_action_and_what_is_said_of_it() -> None:
    document = yaml.safe_load((REPOSITORY / "action.yml").read_text("utf-8"))
    assert all(item.get("description") and "default" in item for item in document["inputs"].values())
    page = (REPOSITORY / "docs/recipes.md").read_text("utf-8")
    for name in (*document["inputs"], *document["outputs"]):
        assert re.search(rf"^\| `{name}` \|", page, flags=re.M), f"docs/recipes.md does not say what {name} is"
    assert all(command in document["inputs"]["command"]["description"] for command in COMMANDS)


class TestTheRunner:
    """The runner of these tests refuses what would not be carried out."""

    @pytest.mark.parametrize("text", ["${{ inputs.nothing }}", "${{ inputs.a || 'b' }}", "${{ secrets.TOKEN }}"])
    def test_expressions(self, text: str) -> None:
        with pytest.raises(Refused):
            evaluate(text, {"inputs": {"a": "1"}})
        assert evaluate("x ${{ inputs.a }} ${{inputs.a}}", {"inputs": {"a": "1"}}) == "x 1 1"

    @pytest.mark.parametrize(
        "step",
        [
            {"run": "echo ${{ inputs.a }}", "shell": "bash"},
            {"run": "echo"},
            {"run": "echo", "shell": "bash", "continue-on-error": True},
            {"run": "echo", "shell": "bash", "if": "failure()"},
            {"run": "echo A=1 >> $GITHUB_ENV", "shell": "bash"},
        ],
    )
    def test_steps(self, tmp_path: Path, machine: Machine, step: dict[str, str]) -> None:
        runner = Runner(tmp_path, tmp_path, machine.environment(tmp_path))
        with pytest.raises(Refused):
            runner._steps([step], {"inputs": {"a": "1"}}, composite=True)
