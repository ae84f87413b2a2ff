"""The second patchset on real releases: that the engine knows nothing of the first one."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from footprint import footprints, times

import wheel_tree
from ddtree_patcher import patchset as patchsets
from ddtree_patcher import resources
from ddtree_patcher.model import CheckOutcome, CheckResult, Tier
from ddtree_patcher.verification.probes_runner import run_probe
from sglang_releases import STEPS as STEPS_OF_DDTREE
from sglang_releases import SUPPORTED

pytestmark = pytest.mark.wheels

OURS = ("--patchset", "rocm")
STEPS = ("quantization", "attention", "import-guard", "loading-timeout", "window-layers")
WITHOUT_COHERE2_MOE = ("0.5.11", "0.5.12", "0.5.12.post1")
# The two homes of the timeout: each is proved by SGLang itself.
PROVED = ("0.5.13", "0.5.23")
SMOKE = patchsets.locate("rocm") / "smoke" / "program.py"


def outcomes(version: str, word: str) -> dict[str, str]:
    needless = {"window-layers"} if version in WITHOUT_COHERE2_MOE else set()
    return {step: "not_needed" if step in needless else word for step in STEPS}


def smoke(python: str, site: Path) -> tuple[CheckResult, ...]:
    return run_probe(python, site, SMOKE, (), Tier.SMOKE, 300.0, lambda said: None)


@pytest.mark.parametrize("version", [version for version in SUPPORTED if version not in PROVED])
def test_applied_and_put_back(
    version: str, tree: Callable[..., Path], wheel: Callable[[str], Path], run_here: Any
) -> None:
    site = tree(version)
    before = times(site)
    there = (*OURS, "--root", site)

    applied = run_here(*there, "apply", "--require", "static", "--verify", "static").expect(0)
    assert applied.outcomes == outcomes(version, "applied")
    assert applied.json["patchset"]["id"] == "rocm"
    assert applied.codes == []
    assert run_here(*there, "status", "--check").expect(0).json["outcome"] == "applied"

    run_here(*there, "revert").expect(0)
    assert list(wheel_tree.differences(wheel(version), site)) == []
    assert times(site) == before


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.parametrize("version", PROVED)
def test_proved_by_sglang_itself_and_put_back(
    version: str, tree: Callable[..., Path], wheel: Callable[[str], Path], run_cli: Any, sglang_python: str
) -> None:
    """The last release by ``verify``, with every tier; the other by the smoke program alone, to save the time."""
    site = tree(version)
    there = (*OURS, "--root", site, "--python", sglang_python)
    applied = run_cli(*there, "apply", "--verify", "none").expect(0)
    assert applied.outcomes == outcomes(version, "applied")
    patched = footprints(site)
    assert run_cli(*there, "apply", "--verify", "none").expect(0).outcomes == outcomes(version, "already")
    assert footprints(site) == patched
    if version == PROVED[-1]:
        checks = run_cli(*there, "verify", "--require", "smoke").expect(0).json["checks"]
        assert {item["tier"] for item in checks} == {"static", "import", "smoke"}
        assert {item["outcome"] for item in checks} == {"passed"}
    else:
        assert {item.outcome for item in smoke(sglang_python, site)} == {CheckOutcome.PASSED}
    run_cli(*there, "revert").expect(0)
    assert list(wheel_tree.differences(wheel(version), site)) == []


@pytest.mark.engine
@pytest.mark.slow
def test_on_a_pristine_release_every_step_has_a_check_that_fails(
    shared_tree: Callable[[str], Path], sglang_python: str
) -> None:
    checks = smoke(sglang_python, shared_tree(PROVED[-1]))
    failed = {item.id: item.detail for item in checks if item.outcome is CheckOutcome.FAILED}
    assert {name.partition(":")[0] for name in failed} == set(STEPS)
    assert "moe_wna16 is refused" in failed["quantization:accepted"]
    assert "create_weights" in failed["attention:constructed"]
    assert "libcudart" in failed["import-guard:starts-without"]
    assert "480" in failed["loading-timeout:read"]
    assert [item.id for item in checks if item.outcome is CheckOutcome.PASSED] == ["import-guard:hides-nothing-else"]


def test_one_installation_holds_one_patchset(tree: Callable[..., Path], run_here: Any) -> None:
    site = tree("0.5.18")
    run_here("--root", site, "apply", "--verify", "none").expect(0)
    patched = footprints(site)
    for command in (("plan",), ("apply", "--verify", "none"), ("verify", "--tier", "static")):
        assert "other_patchset" in run_here(*OURS, "--root", site, *command).codes, command
    assert footprints(site) == patched
    # Whatever is applied can be taken out by whoever asks: it says which patchset that was.
    assert run_here(*OURS, "--root", site, "revert").expect(0).json["patchset"]["id"] == "ddtree"
    run_here(*OURS, "--root", site, "apply", "--verify", "none").expect(0)
    refused = run_here("--root", site, "apply", "--verify", "none")
    assert refused.codes == ["other_patchset"] and "rocm" in refused.stdout
    assert run_here("--root", site, "status").codes[0] == "other_patchset"


def test_diff_speaks_of_the_files_that_the_patchset_looks_at(shared_tree: Callable[[str], Path], run_here: Any) -> None:
    there = ("--root", shared_tree("0.5.16"), "diff", "--snapshot", "0.5.15")
    changed = {
        name: {item["path"] for item in run_here("--patchset", name, *there).expect(0).json["changes"]}
        for name in ("ddtree", "rocm")
    }
    for name, paths in changed.items():
        assert paths and paths <= set(patchsets.load(name).patchset.watched())
    assert changed["ddtree"] != changed["rocm"]


def test_diff_says_what_no_snapshot_watches(shared_tree: Callable[[str], Path], run_here: Any, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "__init__.py").write_text(OWN)
    report = run_here("--patchset", folder, "--root", shared_tree("0.5.18"), "diff").expect(0)
    (said,) = [item for item in report.json["diagnostics"] if item["code"] == "unwatched"]
    assert said["path"] == "sglang/version.py" and "snapshot capture" in said["remedy"]
    assert report.json["changes"] == []


def test_matrix_is_about_the_patchset_that_was_named(
    wheel: Callable[[str], Path], run_here: Any, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    folder = wheel("0.5.15.post1").parent
    rows = run_here(*OURS, "matrix", "--wheels", folder, "0.5.15.post1", "--markdown", page).expect(0).json["releases"]
    assert [(row["version"], row["verdict"]) for row in rows] == [("0.5.15.post1", "applies")]
    assert tuple(step["id"] for step in rows[0]["steps"]) == STEPS
    text = page.read_text()
    assert "DDTREE" not in text and not any(f"`{step}`" in text for step in STEPS_OF_DDTREE)


OWN = textwrap.dedent(
    """
    from ddtree_patcher.codemods import SetConstant
    from ddtree_patcher.patchset import Patchset, Step, Variant

    PATH = "sglang/version.py"
    PATCHSET = Patchset(
        id="own",
        version="1",
        summary="another version",
        distribution="sglang",
        package="sglang",
        supports="",
        steps=(Step("one", "one", "", (Variant("only", edits=(SetConstant(PATH, "version", "...", "'1'"),)),)),),
    )
    """
)


def test_how_each_step_is_done_is_recorded(wheel: Callable[[str], Path], tmp_path: Path, run_here: Any) -> None:
    (folder,) = {wheel(version).parent for version in SUPPORTED}
    made = tmp_path / "survival.json"
    run_here(*OURS, "matrix", "--wheels", folder, "--survival", made).expect(0)
    committed = resources.folder("snapshots") / "survival" / "rocm.json"
    assert made.read_bytes() == committed.read_bytes(), "run `make survival`"
