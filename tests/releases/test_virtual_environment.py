"""A real virtual environment, into which pip installs SGLang, found by its interpreter alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

import wheel_tree
from fetch_wheels import PLATFORM
from sglang_releases import outcomes

pytestmark = [pytest.mark.wheels, pytest.mark.slow]

OLD, NEW = "0.5.13", "0.5.13.post1"
OURS = "ddtree"
STATE = ".ddtree-patch/"


@dataclass(frozen=True)
class Environment:
    """A virtual environment and its own pip."""

    python: str
    site: Path  # its site-packages
    wheel: Callable[[str], Path]

    def install(self, version: str, *options: str) -> None:
        """From the cached wheel; where this Python is not the wheel's, as pip does it for a named platform."""
        path = self.wheel(version)
        suits = parse_wheel_filename(path.name)[3].intersection(sys_tags())
        elsewhere = () if suits else (*PLATFORM, "--upgrade", "--target", str(self.site))
        self.pip("install", "--no-deps", "--no-index", *elsewhere, *options, str(path))

    def pip(self, *arguments: str) -> None:
        subprocess.run([self.python, "-m", "pip", "--quiet", "--no-input", *arguments], check=True)

    def borrow(self, python: str) -> None:
        """Import what another interpreter's site-packages hold: SGLang's dependencies, 2 GB that need no copy."""
        ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
        found = subprocess.run([python, "-c", ask], check=True, capture_output=True, encoding="utf-8")
        (self.site / "dependencies.pth").write_text(found.stdout)

    def others(self) -> Mapping[str, bytes]:
        """Every file of site-packages that is neither the wheel's nor our state, and RECORD: what pip wrote itself."""
        shipped = wheel_tree.names(self.wheel(NEW)) - {f"sglang-{NEW}.dist-info/RECORD"}
        names = set(wheel_tree.files(self.site)) - shipped
        return {name: (self.site / name).read_bytes() for name in names if not name.startswith(STATE)}


@pytest.fixture
def environment(tmp_path: Path, wheel: Callable[[str], Path]) -> Environment:
    folder = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    return Environment(str(folder / "bin" / "python"), site, wheel)


@pytest.mark.engine
def test_found_by_python_alone_applied_verified_and_put_back(
    environment: Environment, run_cli: Any, sglang_python: str
) -> None:
    environment.install(NEW)
    environment.borrow(sglang_python)
    before = environment.others()
    assert any(name.endswith(".pyc") and "server_args" in name for name in before)  # pip compiled: these count too
    there = ("--python", environment.python)

    described = run_cli(*there, "doctor").expect(0).json["installation"]
    assert (described["version"], described["installer"]) == (NEW, "pip")
    assert Path(described["root"]) == environment.site.resolve() / "sglang"

    applied = run_cli(*there, "apply", "--require", "smoke").expect(0)
    assert applied.outcomes == outcomes(NEW, "applied")
    run_cli(*there, "verify", "--require", "smoke").expect(0)
    assert _flag_in(environment, "server_args.py")
    run_cli(*there, "revert").expect(0)
    assert list(wheel_tree.differences(environment.wheel(NEW), environment.site, before)) == []


def test_what_python_runs_after_apply_is_the_patched_source(environment: Environment, run_cli: Any) -> None:
    """The cached bytecode that pip made is not used for a source that was replaced."""
    environment.install(NEW)
    run_cli("--python", environment.python, "apply", "--verify", "static").expect(0)
    program = (
        "import importlib.machinery as m, sys\n"
        "code = m.SourceFileLoader('spec_info', sys.argv[1]).get_code('spec_info')\n"
        "print(any('is_ddtree' in getattr(item, 'co_names', ()) for item in code.co_consts))\n"
    )
    path = environment.site / "sglang/srt/speculative/spec_info.py"
    done = subprocess.run(
        [environment.python, "-c", program, str(path)], capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.strip() == "True"


def test_uninstalling_leaves_nothing_of_ours_but_the_state(environment: Environment, run_cli: Any) -> None:
    environment.install(NEW, "--no-compile")
    run_cli("--python", environment.python, "apply", "--verify", "static").expect(0)
    environment.pip("uninstall", "--yes", "sglang")
    assert not (environment.site / "sglang").exists()
    left = [name for name in wheel_tree.files(environment.site) if OURS in name]
    # The state is kept on purpose: an installation that is put in the place of this one is known to be `wiped` by it.
    assert [name for name in left if not name.startswith(STATE)] == []


def test_reinstalled_over_the_patch_it_is_wiped_and_can_be_patched_again(
    environment: Environment, run_cli: Any
) -> None:
    environment.install(NEW, "--no-compile")
    there = ("--python", environment.python)
    run_cli(*there, "apply", "--verify", "static").expect(0)
    environment.install(NEW, "--no-compile", "--force-reinstall")
    before = environment.others()

    wiped = run_cli(*there, "status", "--check").expect(3)
    assert wiped.json["outcome"] == "wiped"
    assert wiped.json["diagnostics"][0]["remedy"]
    run_cli(*there, "verify", "--tier", "static").expect(5)

    again = run_cli(*there, "apply", "--verify", "static").expect(0)
    assert again.outcomes == outcomes(NEW, "applied")
    assert run_cli(*there, "status", "--check").expect(0).json["outcome"] == "applied"
    run_cli(*there, "revert").expect(0)
    assert list(wheel_tree.differences(environment.wheel(NEW), environment.site, before)) == []


def test_upgraded_over_the_patch_the_new_release_is_patched_from_its_own_bytes(
    environment: Environment, run_cli: Any
) -> None:
    environment.install(OLD, "--no-compile")
    there = ("--python", environment.python)
    run_cli(*there, "apply", "--verify", "static").expect(0)
    environment.install(NEW, "--no-compile")
    before = environment.others()

    assert run_cli(*there, "status", "--check").expect(3).json["outcome"] == "wiped"
    again = run_cli(*there, "apply", "--verify", "static").expect(0)
    assert again.json["installation"]["version"] == NEW
    assert again.outcomes == outcomes(NEW, "applied")
    run_cli(*there, "revert").expect(0)
    assert list(wheel_tree.differences(environment.wheel(NEW), environment.site, before)) == []


def test_reverting_what_was_wiped_leaves_the_new_installation_alone(environment: Environment, run_cli: Any) -> None:
    environment.install(OLD, "--no-compile")
    there = ("--python", environment.python)
    run_cli(*there, "apply", "--verify", "static").expect(0)
    environment.install(NEW, "--no-compile")
    before = environment.others()
    run_cli(*there, "revert").expect(0)
    assert list(wheel_tree.differences(environment.wheel(NEW), environment.site, before)) == []
    assert run_cli(*there, "status").expect(0).json["outcome"] == "clean"


def _flag_in(environment: Environment, name: str) -> bool:
    return b"--speculative-ddtree-budget" in (environment.site / "sglang/srt" / name).read_bytes()
