"""The pre-commit hook, run by pre-commit in a repository of its own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import MakeEnvironment, edit
from .machine import RECIPES, Machine

pytestmark = [pytest.mark.wheels, pytest.mark.slow]

CONFIGURATION = ".pre-commit-config.yaml"


def test_a_commit_is_stopped_where_the_patch_is_not_there(
    tmp_path: Path, machine: Machine, environment: MakeEnvironment
) -> None:
    for program in ("git", "pre-commit", "ddtree-patch"):
        machine.lend(program)
    repository = tmp_path / "repository"
    repository.mkdir()
    shutil.copy(RECIPES / "pre-commit" / CONFIGURATION, repository)
    (repository / ".gitignore").write_text(".venv/\n")
    variables = {
        **machine.environment(tmp_path / "home"),
        "PRE_COMMIT_HOME": str(tmp_path / "pre-commit"),
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }

    def run(*command: str) -> tuple[int, str]:
        done = subprocess.run(
            command, cwd=repository, env=variables, capture_output=True, encoding="utf-8", check=False
        )
        return done.returncode, done.stdout + done.stderr

    assert run("git", "init", "--quiet")[0] == 0
    assert run("pre-commit", "validate-config", CONFIGURATION)[0] == 0
    code, said = run("pre-commit", "install")
    assert code == 0 and ".git/hooks/pre-commit" in said and ".git/hooks/pre-push" in said
    assert run("git", "add", ".")[0] == 0

    installed = environment(repository / ".venv")
    code, said = run("git", "commit", "--message", "unpatched")
    assert code == 1 and "exit code: 3" in said and "status: clean" in said
    tool = ("ddtree-patch", "--python", ".venv/bin/python")
    assert run(*tool, "apply", "--verify", "none")[0] == 0
    code, said = run("git", "commit", "--message", "patched")
    assert code == 0 and "SGLang has the DDTREE patch" in said and "Passed" in said
    edit(installed)
    code, said = run("git", "commit", "--allow-empty", "--message", "edited")
    assert code == 1 and "exit code: 3" in said and "status: drifted" in said
    assert run("git", "log", "--format=%s")[1] == "patched\n"
